# SPDX-License-Identifier: Apache-2.0
"""Find PCI devices recorded for the wrong server, or for a deleted one."""

from collections.abc import Iterator

from nfv_sched.ops.audit import hosts
from nfv_sched.ops.audit import values
from nfv_sched.ops.snapshot import snapshot


def check(site: hosts.Site) -> Iterator[values.AuditFinding]:
    """Find devices of servers not on this host, and of the wrong server."""
    here = {server.uuid for server in site.servers}
    here.update(move.server for move in site.moves)
    gone: dict[str, list[str]] = {}
    for device in site.host.devices:
        if (device.server is not None and device.status in hosts.USED
                and device.server not in here
                and device.server not in site.whole.unread):
            gone.setdefault(device.server, []).append(device.address)
    for uuid, addresses in gone.items():
        server = site.known.get(uuid)
        if not site.host.up:
            yield values.finding(
                values.LEFT_BEHIND, site.title,
                f'device {", ".join(addresses)} of {_owner(server, uuid)}',
                server)
        elif server is None or server.task is None:
            yield values.finding(
                values.DEVICE_GONE, site.title,
                f'device {", ".join(addresses)} of {_owner(server, uuid)}',
                server)
    owners = {device.address: device for device in site.host.devices}
    for server in site.steady:
        for port in server.ports or ():
            device = owners.get(port.device) if port.device else None
            if device is not None and device.server != server.uuid:
                owner = (f'that of {_owner(None, device.server)}'
                         if device.server else 'free')
                if device.server in site.known:
                    owner = f'that of {site.known[device.server].name}'
                yield values.finding(
                    values.DEVICE_OTHER, site.title,
                    f'device {port.device} of its port {port.id} is {owner} '
                    'by the record of the host', server)


def _owner(server: snapshot.Server | None, uuid: str) -> str:
    if server is None:
        return f'{uuid}, for which there is no server'
    return f'a server that is on {server.host or "no host"}'
