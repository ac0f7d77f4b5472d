#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""The one place where the simulator meets the insides of Nova.

Nova keeps ``nova.scheduler.filters``, ``nova.scheduler.weights``,
``nova.conf``, ``nova.objects`` and ``nova.exception`` usable for out-of-tree
code.  Everything else that the simulator drives -- the scheduler manager, the
host manager, the claims, the NUMA arithmetic, the API's checks -- is imported
here, and the few things that need a service or a database are taken out here.
"""

from collections.abc import Iterator
import contextlib
import typing as ty
import warnings

# Nova's libraries warn about eventlet, which nothing here uses.
with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    from oslo_service import backend
    with contextlib.suppress(Exception):
        # Nova's own choice where eventlet is not asked for. Whoever embeds
        # the simulator may have chosen already.
        backend.init_backend(backend.BackendType.THREADING)
    from nova.api.validation.extra_specs import validators
    from nova.compute import claims
    import nova.conf
    from nova import context as nova_context
    from nova import exception
    from nova.network import model as network_model
    from nova import objects
    from nova.pci import stats as pci_stats
    from nova.scheduler import host_manager
    from nova.scheduler import manager
    from nova.scheduler import request_filter
    from nova.scheduler import utils as scheduler_utils
    from nova import servicegroup
    from nova.virt import hardware
    import oslo_messaging as messaging

# Their classes are attributes of the package only from now on.
objects.register_all()

CONF = nova.conf.CONF

ExpectedException = messaging.ExpectedException
Claim = claims.Claim
MoveClaim = claims.MoveClaim
HostManager = host_manager.HostManager
HostState = host_manager.HostState
ReadOnlyDict = host_manager.ReadOnlyDict
SchedulerManager = manager.SchedulerManager
PciDeviceStats = pci_stats.PciDeviceStats

numa_get_constraints = hardware.numa_get_constraints
numa_usage_from_instance_numa = hardware.numa_usage_from_instance_numa
claim_resources = scheduler_utils.claim_resources

#: Version of the Placement API whose allocation requests the ledger makes.
ALLOCATION_REQUEST_VERSION = '1.36'

# Request filters that ask a service or a database. Availability zones are
# dealt with by the simulator itself.
_ONLINE_REQUEST_FILTERS = frozenset((
    'require_tenant_aggregate',
    'map_az_to_placement_aggregate',
    'isolate_aggregates',
    'accelerators_filter',
    'routed_networks_filter',
    'remote_managed_ports_filter',
    'owner_nova_filter',
))


def admin_context():
    """A request context of an administrator, with fixed ids."""
    return nova_context.RequestContext(
        user_id='simulator', project_id='simulator', is_admin=True,
        overwrite=False)


@contextlib.contextmanager
def offline() -> Iterator[None]:
    """Leave out the request filters that need services, while inside."""
    filters = request_filter.ALL_REQUEST_FILTERS
    before = list(filters)
    filters[:] = [f for f in before
                  if f.__name__ not in _ONLINE_REQUEST_FILTERS]
    try:
        yield
    finally:
        filters[:] = before


def scheduler_init(scheduler: SchedulerManager, hosts: HostManager) -> None:
    """What ``SchedulerManager.__init__`` does without talking to services.

    :param scheduler: a manager made without its ``__init__``
    :param hosts: its host manager
    """
    scheduler.host_manager = hosts
    scheduler.servicegroup_api = servicegroup.API()
    scheduler.notifier = None


def extra_spec_problem(name: str, value: str) -> str | None:
    """What the Nova API has against an extra spec, since version 2.86.

    :param name: key of the extra spec
    :param value: its value
    :returns: the complaint of the API, or None
    """
    try:
        validators.validate(name, value)
    except exception.ValidationError as e:
        return str(e)
    return None


def image_meta(properties: ty.Mapping[str, ty.Any]):
    """``nova.objects.ImageMeta`` of some image properties.

    :param properties: properties by name
    :raises ValueError: if Nova does not take a value
    """
    return objects.ImageMeta.from_dict({
        'status': 'active',
        'properties': {name: value if isinstance(value, (bool, int))
                       else str(value)
                       for name, value in properties.items()}})


def unknown_image_properties(
        properties: ty.Iterable[str]) -> list[str]:
    """The names among *properties* that Nova does not know."""
    fields = objects.ImageMetaProps.fields
    return sorted(set(properties) - set(fields))


def network_info(ports: ty.Iterable[ty.Mapping[str, ty.Any]]):
    """The network information that a server carries.

    :param ports: mappings with ``port_id``, ``network_id``, ``name``,
        ``physical_network`` (or None) and ``tunneled``
    """
    vifs = []
    for port in ports:
        meta = {'tunneled': port['tunneled']}
        if port['physical_network']:
            meta['physical_network'] = port['physical_network']
        network = network_model.Network(
            id=port['network_id'], label=port['name'])
        network['meta'].update(meta)
        vifs.append(network_model.VIF(
            id=port['port_id'], network=network, active=True))
    return network_model.NetworkInfo(vifs)


def live_migration_carries_limits() -> bool:
    """Whether the limits reach the claim of a live migration."""
    from nfv_sched import nova_compat
    return nova_compat.live_migration_carries_limits()
