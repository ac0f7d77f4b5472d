# SPDX-License-Identifier: Apache-2.0
"""Small hosts, guests and requests for the unit tests, as Nova's objects."""

from nova import objects
from nova.pci import stats
from nova.scheduler import weights
from oslo_utils import uuidutils

from nfv_sched.scheduler import notes
from nfv_sched.tests import strategies

VSWITCH = 'nfv_vswitch'


def host_topology(nodes=2, cpus=4, switch=(1,), node_labels=True,
                  physnets=None, tunnel=(), free=None, pages=0, threads=1,
                  shared=0):
    """Host NUMA nodes with dedicated CPUs, and shared ones if told so.

    :param cpus: CPUs per node
    :param switch: nodes with the virtual switch; None to declare nothing
    :param physnets: nodes of each physical network
    :param free: free CPUs of each node, by node
    :param pages: pages of 2 MiB of each node
    :param threads: sibling threads of a core
    :param shared: CPUs of each node that are shared
    """
    cells = []
    for node in range(nodes):
        ids = range(node * cpus, (node + 1) * cpus)
        names = {name for name, near in (physnets or {}).items()
                 if node in near}
        if switch is not None and node in switch:
            names.add(VSWITCH)
        if node_labels:
            names.add(f'nfv_node{node}')
        taken = cpus - (free or {}).get(node, cpus)
        cells.append(objects.NUMACell(
            id=node, cpuset=set(ids[:shared]), pcpuset=set(ids[shared:]),
            memory=8192, cpu_usage=0, memory_usage=0,
            pinned_cpus=set(ids[shared:][:taken]),
            siblings=[set(ids[cpu:cpu + threads])
                      for cpu in range(0, cpus, threads)],
            mempages=[objects.NUMAPagesTopology(
                size_kb=size, total=total, used=0, reserved=0)
                for size, total in ((4, 8192 * 256), (2048, pages)) if total],
            socket=node, network_metadata=objects.NetworkMetadata(
                physnets=names, tunneled=node in tunnel)))
    return objects.NUMATopology(cells=cells)


def host(name='host1', devices=None, **topology):
    """A HostState; see :func:`host_topology`.

    :param devices: free VFs of each node, by node; None stands for devices
        without NUMA information
    """
    state = strategies.host_state(host_topology(**topology), name=name)
    state.pci_stats = pci_stats(state.numa_topology, devices or {})
    return state


def pci_stats(topology, devices, **tags):
    """Free VFs of each node, as Nova's scheduler knows them."""
    return stats.PciDeviceStats(topology, objects.PciDevicePoolList(objects=[
        objects.PciDevicePool(
            vendor_id='8086', product_id='1515', numa_node=node, count=count,
            tags={'dev_type': 'type-VF', **tags})
        for node, count in devices.items()]))


def pci_request(count=1, policy='legacy', alias='vf', **spec):
    """A request for VFs; one of a port if ``alias`` is None."""
    return objects.InstancePCIRequest(
        count=count, numa_policy=policy, alias_name=alias,
        request_id=uuidutils.generate_uuid(),
        spec=[{'vendor_id': '8086', 'product_id': '1515',
               'dev_type': 'type-VF', **spec}])


def guest(cells=1, vcpus=2, memory=512):
    """A pinned guest with this many vCPUs and MiB in each NUMA node."""
    return objects.InstanceNUMATopology(cells=[
        objects.InstanceNUMACell(
            id=index, cpuset=set(),
            pcpuset=set(range(index * vcpus, (index + 1) * vcpus)),
            memory=memory, cpu_policy='dedicated')
        for index in range(cells)])


def spec(vswitch=None, numa=True, network=None, nodes=None, move=False,
         networks=(), extra_specs=None, devices=(), live=False, **shape):
    """Return a RequestSpec.

    :param vswitch: ``strict`` or ``prefer``
    :param nodes: host node of each mapped guest node
    :param networks: IDs of the requested networks
    :param live: whether a move is a live migration; None to ask Nova's
        database
    """
    specs = dict(extra_specs or {})
    if vswitch is not None:
        specs['nfv:vswitch_numa_affinity'] = vswitch
    for index, node in (nodes or {}).items():
        specs[f'nfv:numa_node.{index}'] = str(node)
    request = strategies.request_spec(
        guest(**shape) if numa else None, network, specs)
    request.pci_requests.requests.extend(devices)
    if move:
        request.requested_destination = objects.Destination(
            cell=objects.CellMapping(
                uuid='8b0d7bd9-2a1d-4b64-8a3a-3f0b9e1c2d3e'))
        notes.note_of(request).live_migration = live
    if networks:
        request.requested_networks = objects.NetworkRequestList(objects=[
            objects.NetworkRequest(network_id=network, port_id=network)
            for network in networks])
    return request


def network(*physnets, tunneled=False):
    return objects.NetworkMetadata(physnets=set(physnets), tunneled=tunneled)


def weigh(weigher, request, *hosts):
    """Return the weights of hosts as Nova's weight handler asks for them."""
    return weigher.weigh_objects(
        [weights.WeighedHost(host, 0.0) for host in hosts], request)
