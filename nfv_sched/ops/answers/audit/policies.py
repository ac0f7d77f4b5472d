# SPDX-License-Identifier: Apache-2.0
"""Find strict policies that are violated, and remote devices and networks.

The placement rules themselves decide whether a server keeps its policies where
it is.  The flavor counts as it was when the server was booted or resized.
"""

from collections.abc import Iterator
from nfv_sched.base import extra_specs
from nfv_sched.base import reasons
from nfv_sched.fit import decide
from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.numa import topology
from nfv_sched.fit import rules
from nfv_sched.fit.rules import pci as pci_rule
from nfv_sched.limits import usage
from nfv_sched.ops.answers.audit import hosts
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import start

# PCI policy of this package -> Nova's own.
_NATIVE = {extra_specs.STRICT: pci.REQUIRED, extra_specs.SOCKET: pci.SOCKET,
           extra_specs.PREFER: pci.PREFERRED}


def check(site: hosts.Site) -> hosts.Findings:
    uuids_by_cpu: dict[int, set[str]] = {}
    for server, part in site.certain:
        for cpu in part.pins.values():
            uuids_by_cpu.setdefault(cpu, set()).add(server.uuid)
    for server in site.steady:
        violations = list(_violations(site, server, uuids_by_cpu))
        for reason in violations:
            yield site.finding(values.POLICY, str(reason), server)
        yield from _find_remote(site, server, {
            reason.order for reason in violations})


def _find_remote(site: hosts.Site, server: snapshot.Server,
                 broken: set[int]) -> hosts.Findings:
    if not (own := {part.host_node for part in server.nodes or ()}):
        return
    if pci_rule.PCIRule.order not in broken and not _near_enough(site, server):
        for device in site.devices_of(server):
            if device.node is not None and device.node not in own:
                yield site.finding(
                    values.REMOTE_DEVICE, f'device {device.address} is near '
                    f'node {device.node}, the server on {view.listed(own)}',
                    server)
    near = view.near(site.host)
    for network in sorted({
            port.physnet for port in server.ports or ()
            if port.physnet is not None
            and not usage.bypasses_vswitch(port.vnic_type)}):
        nodes = near.get(network)
        if nodes and own.isdisjoint(nodes):
            yield site.finding(
                values.REMOTE_NETWORK, f'network {network} is near node '
                f'{view.listed(nodes)}, the server on {view.listed(own)}',
                server)


def _near_enough(site: hosts.Site, server: snapshot.Server) -> bool:
    """Return True if socket affinity was requested and its devices keep it."""
    policy = extra_specs.parse(server.flavor.extra_specs, server.image)
    chosen = _node_positions(site, server)
    return (policy.pci == extra_specs.SOCKET and chosen is not None
            and site.topology is not None and bool(site.devices_of(server))
            and _devices(site.topology, site.devices_of(server), pci.SOCKET)
            .accepts(candidates.mask_of(chosen)))


def _violations(site: hosts.Site, server: snapshot.Server,
                uuids_by_cpu: dict[int, set[str]]) -> Iterator[reasons.Reason]:
    host = site.topology
    policy = extra_specs.parse(server.flavor.extra_specs, server.image)
    if policy.errors:
        yield reasons.Reason(
            reasons.REQUEST, 'flavor', '; '.join(map(str, policy.errors)))
        return
    chosen = _node_positions(site, server)
    if server.nodes is not None and (host is None or chosen is None):
        return  # the check of the records reports that
    own = site.devices_of(server)
    native = pci.LEGACY
    if policy.pci_key not in extra_specs.PCI_KEYS:
        native = _NATIVE.get(policy.pci, native)
    try:
        request = _request_parts(
            policy, server, own, native,
            host is not None and bool(host.tunnel))
        strict = [rule for rule in rules.from_request(request) if rule.strict]
    except numa_rule.RequestError as exc:
        yield exc.reason
        return
    except topology.OddTopologyError:
        return
    names = scenario.label_names(site.whole.cloud)
    if request.guest is None or host is None or chosen is None:
        yield from decide.broken_rules(strict, host, names)
        return
    pinning = numa_rule.Pinning(
        chosen, [tuple(part.pins.values()) for part in server.nodes or ()],
        frozenset(cpu for cpu, owners in uuids_by_cpu.items()
                  if owners != {server.uuid}))
    devices = _devices(host, own, native) if own else None
    yield from decide.broken_rules(
        strict, host, names, request.guest, pinning, devices,
        server.ports is not None and all(
            port.network for port in server.ports))
    if devices is not None and native in (
            pci.REQUIRED, pci.SOCKET) and not devices.accepts(
                candidates.mask_of(chosen)):
        yield reasons.Reason(
            pci_rule.PCIRule.order, f'{policy.pci_key}={native}',
            'PCI devices of such NUMA nodes needed',
            'it is on ' + view.listed({
                part.host_node for part in server.nodes or ()}))


def _node_positions(site: hosts.Site,
                    server: snapshot.Server) -> tuple[int, ...] | None:
    try:
        return tuple(site.positions[part.host_node]
                     for part in server.nodes or ())
    except KeyError:
        return None


def _request_parts(policy: extra_specs.NFVPolicy, server: snapshot.Server,
                   devices: list[snapshot.Device], native: str,
                   tunnel: bool) -> numa_rule.RequestParts:
    """Return the request of a server, for the PCI devices that it has.

    :param tunnel: True if the host reports where its tunnels end
    :raises OddTopologyError: if its NUMA nodes cannot be read
    """
    numa_topology = start.instance_topology(server)
    ports = [port for port in server.ports or ()
             if not usage.bypasses_vswitch(port.vnic_type)]
    specs = server.flavor.extra_specs
    return numa_rule.RequestParts(
        policy=policy, extra_specs=specs, properties=server.image,
        guest=topology.guest(numa_topology), numa_topology=numa_topology,
        demands=tuple(_demand(device, native) for device in devices),
        physnets=frozenset(port.physnet for port in ports
                           if port.physnet is not None),
        tunneled=tunnel and any(port.physnet is None and port.network
                                for port in ports), needs_threads=False)


def _demand(device: snapshot.Device, native: str) -> pci.Demand:
    """Return a PCI request that only one device can serve."""
    return pci.Demand(
        count=1, specs=((('address', device.address),),), policy=native,
        claimed=native, fixable=False, request_id=None, from_port=False,
        providers=(), noun='PCI device', pfs=True, vdpas=True, remote=True,
        migratable=None)


def _devices(host: topology.HostTopology, devices: list[snapshot.Device],
             native: str) -> pci.CandidateDevices:
    """Return the devices of a server as if the host had no others."""
    pools = [{'count': 1, 'numa_node': device.node, 'dev_type': device.kind,
              'address': device.address} for device in devices]
    demands = tuple(_demand(device, native) for device in devices)
    return pci.CandidateDevices(pci.HostDevices(pools, demands, host), None)
