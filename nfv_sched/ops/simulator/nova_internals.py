# SPDX-License-Identifier: Apache-2.0
"""Import the parts of Nova that are not stable interfaces.

Out-of-tree code may rely on ``nova.scheduler.filters``,
``nova.scheduler.weights``, ``nova.conf``, ``nova.objects`` and
``nova.exception``.  Everything else that the simulator uses -- the scheduler
manager, the host manager, the claims, the NUMA code, the checks of the API --
is imported here.  Code that needs a service or a database is replaced here.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import itertools
import types
import typing as ty
import warnings

from nfv_sched.nova import concurrency

# Nova's libraries warn about eventlet, which is not used here.
with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    concurrency.native_threads()
    from nova.compute import claims
    from nova.compute import pci_placement_translator
    from nova.compute import provider_tree
    from nova.compute import utils as compute_utils
    import nova.conf
    from nova import context as nova_context
    from nova import exception
    from nova.network import model as network_model
    from nova.network import neutron
    from nova import objects
    from nova.objects import network_request
    from nova.objects import security_group
    from nova.pci import manager as pci_manager
    from nova.pci import request as pci_request
    from nova.pci import stats as pci_stats
    from nova.pci import whitelist
    from nova.scheduler.filters import numa_topology_filter
    from nova.scheduler import host_manager
    from nova.scheduler import manager
    from nova.scheduler import request_filter
    from nova.scheduler import utils as scheduler_utils
    from nova import servicegroup
    from nova.virt import hardware
    import oslo_messaging as messaging
    from oslo_serialization import jsonutils

from nfv_sched.nova import flavors
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot

# Sets the classes as attributes of nova.objects.
objects.register_all()

CONF = nova.conf.CONF
_AggregateList = objects.aggregate.AggregateList

ExpectedException = messaging.ExpectedException
Claim = claims.Claim
MoveClaim = claims.MoveClaim
HostManager = host_manager.HostManager
HostState = host_manager.HostState
NUMATopologyFilter = numa_topology_filter.NUMATopologyFilter
ReadOnlyDict = host_manager.ReadOnlyDict
SchedulerManager = manager.SchedulerManager
ServiceGroupAPI = servicegroup.API
PciDeviceStats = pci_stats.PciDeviceStats

#: Exceptions of a claim for lack of resources, or for pins that cannot be
#: recorded.
CLAIM_ERRORS = (exception.ComputeResourcesUnavailable,
                exception.PciDeviceRequestFailed,
                exception.CPUPinningUnknown,
                exception.CPUPinningInvalid)

fill_provider_mapping = scheduler_utils.fill_provider_mapping
numa_get_constraints = hardware.numa_get_constraints
numa_usage_from_instance_numa = hardware.numa_usage_from_instance_numa
claim_resources = scheduler_utils.claim_resources
security_groups = security_group.make_secgroup_list

# Request filters that call a service.
_ONLINE_REQUEST_FILTERS = frozenset((
    'accelerators_filter', 'routed_networks_filter',
    'remote_managed_ports_filter', 'owner_nova_filter'))

#: Project of everything that a cloud file creates.
PROJECT = 'simulator'


class NoTenantAggregateError(exception.RequestFilterFailed):
    """No aggregate is for the project, and Nova requires one."""

    msg_fmt = ('no aggregate is for the project, and [scheduler] '
               'placement_aggregate_required_for_tenants is set')


def admin_context():
    return nova_context.RequestContext(
        user_id='simulator', project_id=PROJECT, is_admin=True,
        overwrite=False)


def _require_tenant_aggregate(context: ty.Any,
                              spec: objects.RequestSpec) -> bool:
    """Run Nova's filter; servers of a cloud file need no aggregate."""
    try:
        return request_filter.require_tenant_aggregate(context, spec)
    except exception.RequestFilterFailed as exc:
        if spec.project_id != PROJECT:
            # Nova's exception does not say why there are no hosts.
            raise NoTenantAggregateError() from exc
        return False


@contextlib.contextmanager
def offline(aggregates: Sequence[snapshot.Aggregate]) -> Iterator[None]:
    """Let Nova's code work without services, on these aggregates."""
    def matching(predicate: Callable[[str, str], bool]):
        """Return aggregates with matching metadata, and only these items."""
        reduced = [dataclasses.replace(aggregate, metadata={
            name: text for name, text in aggregate.metadata.items()
            if predicate(name, text)}) for aggregate in aggregates]
        return [aggregate for aggregate in reduced if aggregate.metadata]

    def get_by_metadata(context, key=None, value=None):
        return matching(lambda name, text: (
            key in (None, name) and value in (None, text)))

    def get_non_matching(context, ignored_keys, key_prefix, value):
        return matching(lambda name, text: (
            name.startswith(key_prefix) and text == value
            and name not in ignored_keys))

    filters = request_filter.ALL_REQUEST_FILTERS
    before = list(filters)
    # In place: process_reqspec reads this list of its module.
    filters[:] = [
        _require_tenant_aggregate
        if f is request_filter.require_tenant_aggregate else f
        for f in before if f.__name__ not in _ONLINE_REQUEST_FILTERS]
    with contextlib.ExitStack() as stack:
        stack.callback(filters.__setitem__, slice(None), before)
        for owner, name, value in (
            (neutron, 'get_client', lambda *args, **kwargs: None),
            (_AggregateList, 'get_by_metadata', get_by_metadata),
            (_AggregateList, 'get_non_matching_by_metadata_keys',
             get_non_matching),
        ):
            # vars(), as getattr() would bind class methods.
            stack.callback(setattr, owner, name, vars(owner)[name])
            setattr(owner, name, value)
        # Nova caches the aliases that it has read.
        nova_scheduler.forget_pci_aliases()
        stack.callback(nova_scheduler.forget_pci_aliases)
        yield


def image_meta(properties: ty.Mapping[str, ty.Any]):
    """Return an ``ImageMeta``; ValueError if Nova does not accept a value."""
    for name, value in properties.items():
        if (reason := flavors.oversized(name, value)) is not None:
            raise ValueError(reason)
    return objects.ImageMeta.from_dict({
        # The disk format is unknown, so that no host is excluded by it.
        'status': 'active', 'disk_format': '',
        'properties': {name: value if isinstance(value, (bool, int))
                       else str(value)
                       for name, value in properties.items()}})


def unknown_image_properties(properties: ty.Iterable[str]) -> list[str]:
    fields = objects.ImageMetaProps.fields
    return sorted(name for name in set(properties) - set(fields)
                  if not name.startswith('trait:'))


@dataclasses.dataclass(frozen=True, slots=True)
class SimulatedPort:
    id: str
    network: snapshot.Network  #: its network, with the vNIC type of the port
    security_groups: tuple[scenario.SecurityGroup, ...]
    #: whether the request names the port; if not, it names the network, and
    #: Nova creates the port.  SR-IOV ports always exist.
    exists: bool = False


def network_info(ports: Sequence[SimulatedPort]) -> network_model.NetworkInfo:
    vifs = []
    for port in ports:
        network = network_model.Network(
            id=port.network.id, label=port.network.name)
        network['meta']['tunneled'] = port.network.physnet is None
        if port.network.physnet:
            network['meta']['physical_network'] = port.network.physnet
        vifs.append(network_model.VIF(
            id=port.id, network=network, active=True,
            vnic_type=port.network.vnic_type))
    return network_model.NetworkInfo(vifs)


class _NeutronAPI(neutron.API):
    """Nova's Neutron client, which knows only the ports of one server."""

    def __init__(self, ports: Sequence[SimulatedPort]):
        self._ports = {port.id: port.network for port in ports}
        self._networks = {port.network.id: port.network for port in ports}

    def has_extended_resource_request_extension(self, *args, **kwargs):
        return True

    def _get_port_vnic_info(self, context, client, port_id):
        network = self._ports[port_id]
        return (network.vnic_type, network.trusted, network.id, None,
                network.numa_policy, None)

    def _get_physnet_tunneled_info(self, context, client, net_id):
        physnet = self._networks[net_id].physnet
        return physnet, physnet is None


def resource_requests(context: ty.Any, flavor: objects.Flavor,
                      image_meta: objects.ImageMeta,
                      ports: Sequence[SimulatedPort],
                      stable_uuid: Callable[[str], str]):
    """Make PCI requests and networks of flavor, image and ports, as the API.

    :param stable_uuid: makes the IDs of the PCI requests, from their number
    :returns: (PCI requests, network metadata, requested networks)
    :raises nova.exception.NovaException: if an alias does not exist
    """
    policy = hardware.get_pci_numa_policy_constraint(flavor, image_meta)
    requests = pci_request.get_pci_requests_from_flavor(
        flavor, affinity_policy=policy)
    # A request for no network differs from one without a list of networks.
    networks = objects.NetworkRequestList(objects=[
        objects.NetworkRequest(
            network_id=port.network.id,
            port_id=port.id if port.exists
            or port.network.vnic_type != scenario.NORMAL else None)
        for port in ports] or [
        objects.NetworkRequest(network_id=network_request.NETWORK_ID_NONE)])
    metadata = _NeutronAPI(ports).create_resource_requests(
        context, networks, requests, affinity_policy=policy)[0]
    ids = {}
    # Nova makes random IDs. With fixed ones, runs can be repeated and
    # compared.
    for number, request in enumerate(requests.requests):
        ids[request.request_id] = stable_uuid(str(number))
        request.request_id = ids[request.request_id]
    for network in networks:
        if network.pci_request_id:
            network.pci_request_id = ids[network.pci_request_id]
    return requests, metadata, networks


def move_requests(flavor: objects.Flavor, instance: objects.Instance):
    """Return the PCI requests of a move's claim, as the resource tracker.

    Requests of aliases are made again from the flavor, so they have only the
    NUMA policy of the alias, and no providers that Placement has allocated.
    """
    # Without affinity_policy, as in ResourceTracker._move_claim.
    requests = pci_request.get_pci_requests_from_flavor(flavor)
    requests.instance_uuid = instance.uuid
    requests.requests.extend(
        request for request in instance.pci_requests.requests
        if request.source == objects.InstancePCIRequest.NEUTRON_PORT)
    return requests


def map_requests(context: ty.Any, instance: objects.Instance,
                 spec: objects.RequestSpec) -> None:
    """Write the allocated providers to the PCI requests of a server."""
    if mapping := spec.get_request_group_mapping():
        compute_utils.update_pci_request_with_placement_allocations(
            context, None, instance.pci_requests.requests, mapping)


_device_ids = itertools.count(1)


def device_filter(device_spec: Sequence[Mapping[str, str]]):
    return whitelist.Whitelist([jsonutils.dumps(spec) for spec in device_spec])


class KnownDevices:
    """Nova's device filter where only tags are known, by PCI address."""

    specs: tuple = ()  #: empty; Nova reads it to check all entries

    def __init__(self, tags: Mapping[str, dict[str, str]]):
        self._tags = tags

    def get_devspec(self, device: objects.PciDevice) -> ty.Any:
        # What stands for an entry of ``[pci] device_spec``.
        tags = self._tags.get(device.address)
        return None if tags is None else types.SimpleNamespace(
            dev_name=None, get_tags=lambda: tags)


def pci_device(**fields: ty.Any) -> objects.PciDevice:
    device = objects.PciDevice(id=next(_device_ids), **fields)
    device.obj_reset_changes()
    return device


class PCITracker(pci_manager.PciDevTracker):
    """Nova's PCI tracker of a compute node, without a database.

    :param dev_filter: returns the tags of devices
    :param devices: known devices, in the order in which free ones are
        assigned to servers
    :param pooled: addresses of the devices that have a pool, free or not; Nova
        keeps empty pools, and reads their NUMA nodes
    """

    def __init__(self, node: objects.ComputeNode, dev_filter: ty.Any,
                 devices: Sequence[objects.PciDevice] = (),
                 pooled: Collection[str] = ()):
        self.stale = {}
        self.to_be_removed_when_freed = {}
        self.node_id = node.id
        self.dev_filter = dev_filter
        self.stats = PciDeviceStats(
            node.numa_topology and
            objects.NUMATopology.obj_from_db_obj(node.numa_topology),
            dev_filter=dev_filter)
        self._context = admin_context()
        self.pci_devs = objects.PciDeviceList(objects=list(devices))
        # Pass a copy: Nova sorts the list.
        self._build_device_tree(list(devices))
        for device in devices:
            if device.address in pooled:
                self.stats.add_device(device)
        # Devices were added only to make pools of them;
        # _initial_instance_usage adds the free ones again.
        for pool in self.stats.pools:
            pool.update(count=0, devices=[])
        self._initial_instance_usage()
        self.stats.populate_pools_metadata_from_assigned_devices()

    def report(self, devices: Sequence[Mapping[str, ty.Any]]) -> None:
        """Add devices, in the format in which the virt driver reports them."""
        self.update_devices_from_hypervisor_resources(jsonutils.dumps(devices))
        # The database would set these when Nova saves the devices.
        for device in self.pci_devs:
            device.id = next(_device_ids)
            device.instance_uuid = device.request_id = None

    def in_order(self) -> list[tuple[objects.PciDevice, dict[str, str]]]:
        """Return the devices with the tags of their pools, if they have one.

        The devices of a pool are consecutive; free ones are in the order in
        which they are assigned to servers.
        """
        of_pool = [list(pool['devices']) for pool in self.stats.pools]
        pooled = {device.address for devices in of_pool for device in devices}
        for device in self.pci_devs:
            # Not free, so in no pool: they come after the free ones of theirs.
            if device.address not in pooled:
                keys = self.stats._create_pool_keys_from_dev(device)
                if pool := keys and self.stats._find_pool(keys):
                    of_pool[self.stats.pools.index(pool)].append(device)
                else:
                    of_pool.append([device])
        return [(device, self._tags(device))
                for devices in of_pool for device in devices]

    def _tags(self, device: objects.PciDevice) -> dict[str, str]:
        keys = self.stats._create_pool_keys_from_dev(device)
        if not keys or self.stats._find_pool(keys) is None:
            return {}
        tags = {name: str(value) for name, value in keys.items()
                if name not in self.stats.pool_keys}
        if 'rp_uuid' in device.extra_info:
            tags['rp_uuid'] = device.extra_info['rp_uuid']
        return tags

    def occupied(self) -> Iterator[
            tuple[objects.PciDevice, dict[str, ty.Any]]]:
        """Yield the present devices that are not free, as in their pools."""
        free = {device.address for device in self.stats.get_free_devs()}
        for device in self.pci_devs:
            if device.address in free or device.status in occupied.GONE:
                continue
            pool = self.stats._create_pool_keys_from_dev(device)
            if pool is not None:
                if 'rp_uuid' in device.extra_info:
                    pool['rp_uuid'] = device.extra_info['rp_uuid']
                yield device, pool

    def claim_devices(self, requests: objects.InstancePCIRequests,
                      topology: ty.Any, instance: objects.Instance
                      ) -> list[objects.PciDevice]:
        """Assign devices to a server whose claim was tested."""
        requests.instance_uuid = instance.uuid
        devices = self.claim_instance(self._context, requests, topology)
        self.allocate_instance(instance)
        return list(devices or ())

    def free_devices(self, devices: Sequence[objects.PciDevice],
                     instance: objects.Instance) -> None:
        for device in list(devices):
            self.free_device(device, instance)


class _StableTree(provider_tree.ProviderTree):
    """A tree whose new providers always get the same UUIDs."""

    def __init__(self, stable_uuid: Callable[[str], str]):
        super().__init__()
        self._stable_uuid = stable_uuid

    def new_child(self, name, parent, uuid=None, generation=None):
        return super().new_child(name, parent, self._stable_uuid(name),
                                 generation)


def pci_providers(tracker: PCITracker, node: objects.ComputeNode,
                  stable_uuid: Callable[[str], str]) -> list:
    """Return the providers of PCI devices, as nova-compute makes them.

    The UUID of its provider is also written to each device.
    """
    tree = _StableTree(stable_uuid)
    name = node.hypervisor_hostname
    tree.new_root(name, node.uuid)
    pci_placement_translator.update_provider_tree_for_pci(
        tree, name, tracker, {}, [])
    return [tree.data(uuid) for uuid in tree.get_provider_uuids()
            if uuid != node.uuid]


def is_live_migratable(request: objects.InstancePCIRequest) -> bool:
    # NOTE: Before commit 099859ecf0 (blueprint
    # migrate-vfio-devices-using-kernel-variant-drivers, Nova 31) no alias says
    # it, and Nova refuses these migrations.
    try:
        return request.is_live_migratable()
    except AttributeError:
        return False


def placement_requests(context: ty.Any, spec: objects.RequestSpec,
                       manager: host_manager.HostManager,
                       ) -> list[scheduler_utils.ResourceRequest]:
    """Let Nova's request filters change a request; return its queries."""
    request_filter.process_reqspec(context, spec)
    return flavors.placement_requests(context, spec, manager)
