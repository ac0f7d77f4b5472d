# SPDX-License-Identifier: Apache-2.0
"""Find PCI devices of the wrong server, and what servers lack of theirs."""

import collections
from collections.abc import Iterator, Sequence

import os_traits

from nfv_sched.fit.numa import pci
from nfv_sched.ops.answers.audit import hosts
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.cloud import snapshot


def check(site: hosts.Site) -> hosts.Findings:
    here = {server.uuid for server in site.servers}
    here.update(move.server for move in site.moves)
    gone: dict[str, list[str]] = {}
    for device in site.host.devices:
        if (device.server is not None and device.status in hosts.USED
                and device.server not in here
                and device.server not in site.whole.unread):
            gone.setdefault(device.server, []).append(device.address)
    for uuid, addresses in gone.items():
        server = site.whole.servers.get(uuid)
        text = (f'device {", ".join(addresses)} of '
                f'{hosts.describe_other(uuid, server)}')
        if not site.host.up:
            yield site.finding(values.LEFT_BEHIND, text, server)
        elif server is None or server.task is None:
            yield site.finding(values.DEVICE_GONE, text, server)
    owners = {device.address: device for device in site.host.devices}
    for server in site.steady:
        for port in server.ports or ():
            device = owners.get(port.device) if port.device else None
            if device is not None and device.server != server.uuid:
                owner = 'free'
                if device.server in site.whole.servers:
                    owner = f'that of {site.whole.servers[device.server].name}'
                elif device.server:
                    owner = 'that of ' + hosts.describe_other(
                        device.server, None)
                yield site.finding(
                    values.DEVICE_OTHER, f'device {port.device} of its port '
                    f'{port.id} is {owner} by the record of the host', server)


def compare_requests(site: hosts.Site) -> hosts.Findings:
    # It holds devices for two flavors until its resize is confirmed.
    doubtful = {move.server for move in site.moves
                if move.source == move.target}
    for server in site.steady:
        if server.pci_requests is None or server.uuid in doubtful:
            continue
        for kind, text in _differences(server.pci_requests,
                                       site.devices_of(server)):
            yield site.finding(kind, text, server)
        yield from _compare_allocations(site, server)


def _differences(
    requests: Sequence[snapshot.PCIRequest],
    devices: Sequence[snapshot.Device],
) -> Iterator[tuple[str, str]]:
    request_ids = {request.id for request in requests} - {None}
    loose = [each for each in devices if each.request not in request_ids]
    shares: list[list[snapshot.Device]] = [
        [each for each in devices if each.request == request.id]
        if request.id in request_ids else [] for request in requests]
    # Devices of other requests, or of none in old records, may be meant.
    for request, share in zip(requests, shares):
        fitting = [each for each in loose if not _mismatch(request, each)]
        share += fitting[:max(request.count - len(share), 0)]
        loose = [each for each in loose if each not in share]
    for request, share in zip(requests, shares):
        requester = (
            f'alias {request.alias}' if request.alias
            else f'port {request.port}' if request.port else 'a PCI request')
        if len(share) < request.count:
            yield values.DEVICE_MISSING, (
                f'{request.count} asked for by {requester}, has {len(share)}')
        elif len(share) > request.count:
            yield values.DEVICE_EXTRA, (
                f'{request.count} asked for by {requester}, has ' +
                ', '.join([device.address for device in share]))
        for device in share:
            if mismatch := _mismatch(request, device):
                yield values.DEVICE_DIFFERS, (
                    f'device {device.address} of {requester}: {mismatch}')
    if loose:
        yield values.DEVICE_EXTRA, (
            'no PCI request asks for ' +
            ', '.join([device.address for device in loose]))


def _mismatch(request: snapshot.PCIRequest, device: snapshot.Device) -> str:
    """Return what a device has instead of what was asked; '' if nothing.

    Tags of the device that are not known match: Nova forgets those of a pool
    without free devices.
    """
    have = {**device.tags, 'vendor_id': device.vendor,
            'product_id': device.product, 'dev_type': device.kind}
    texts = []
    for spec in request.specs:
        # Nova gives these only to requests for them.
        default = {'dev_type': pci.VF} if device.kind in (
            pci.PF, pci.VDPA) else {}
        texts.append(', '.join(
            f'{name} {have[name]} instead of {value}'
            for name, value in {**default, **spec}.items() if name in have
            and str(have[name]).lower() != str(value).lower()))
    return min(texts, key=len, default='')


def _compare_allocations(site: hosts.Site,
                         server: snapshot.Server) -> hosts.Findings:
    if server.allocations is None:
        return
    # In the name of its resource provider the letters are large.
    cards = collections.Counter(
        (device.parent or device.address).upper()
        for device in site.devices_of(server))
    for provider in site.host.providers:
        card = provider.name.removeprefix(f'{site.host.hypervisor}_')
        amount = sum(server.allocations.get(provider.uuid, {}).values())
        if (os_traits.COMPUTE_MANAGED_PCI_DEVICE in provider.traits
                and amount != cards[card]):
            yield site.finding(
                values.DEVICE_DIFFERS, f'has {cards[card]} of card {card}, '
                f'{amount} in Placement', server)
