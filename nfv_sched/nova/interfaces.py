# SPDX-License-Identifier: Apache-2.0
"""Check that the installed Nova and libraries have what the filters use.

Nova promises out-of-tree filters little, so another release, or a package of
a distribution, may lack a class, a field or a parameter.  ``INTERFACES`` lists
all of it; what is missing is a failure of ``nfv-sched-status upgrade check``.
``TRIALS`` shows by small examples what no list of names can.

Filters check it only with a release of Nova that is not known.
"""

from collections.abc import Callable, Iterable
import importlib
import inspect
import typing as ty

from nfv_sched.nova.features import Feature
from nfv_sched.nova.features import MissingInterface
from nfv_sched.nova import fields


class Used(ty.NamedTuple):
    module: str  #: name of the module
    #: attribute of the module, with dots; or several, of which one must be
    #: there, with ``|`` between
    name: str
    features: tuple[Feature, ...]  #: what does not work without it
    #: parameters of a function, or attributes of a class or of one of its
    #: objects, that are used
    has: tuple[str, ...] = ()


def _object(name: str, features: tuple[Feature, ...], *has: str) -> Used:
    return Used('nova.objects', name, features, has)


class Trial(ty.NamedTuple):
    what: str
    #: returns whether it does what is expected, or raises if not
    works: Callable[[], bool]
    features: tuple[Feature, ...]  #: what does not work without it


_ALL = (Feature.FILTERS,)
_POLICIES = (Feature.POLICIES,)
_LIMITS = (Feature.LIMITS,)
_EXTRA_SPECS = (Feature.EXTRA_SPECS,)
_LEDGER = (Feature.LEDGER,)
_LIVE = (Feature.LIVE_MIGRATION,)
_JOURNAL = (Feature.JOURNAL,)
_WEIGHERS = (Feature.WEIGHERS,)
_PREDICTION = (Feature.PREDICTION,)

#: What the filters and weighers use of Nova and of libraries.
INTERFACES = (
    Used('nova.conf', 'CONF.filter_scheduler.enabled_filters', _ALL),
    Used('nova.conf', 'CONF.compute.'
         'packing_host_numa_cells_allocation_strategy', _PREDICTION),
    Used('nova.scheduler.filters', 'BaseHostFilter.filter_all', _ALL,
         ('filter_obj_list', 'spec_obj')),
    Used('nova.scheduler.filters', 'BaseHostFilter.run_filter_for_index',
         _ALL, ('index',)),
    *(Used('nova.scheduler.weights', name, _WEIGHERS) for name in (
        'BaseHostWeigher', 'HostWeightHandler', 'WeighedHost')),
    Used('nova.weights', 'normalize', _WEIGHERS,
         ('weight_list', 'minval', 'maxval')),
    Used('nova.scheduler.utils', 'get_weight_multiplier', _WEIGHERS,
         ('host_state', 'multiplier_name', 'multiplier_config')),
    Used('nova.scheduler.utils', 'request_is_rebuild', _ALL, ('spec_obj',)),
    Used('nova.scheduler.host_manager', 'HostState', _ALL, (
        'aggregates', 'host', 'limits', 'numa_topology', 'uuid')),
    Used('nova.scheduler.host_manager', 'HostState', _POLICIES, (
        'cpu_allocation_ratio', 'pci_stats', 'ram_allocation_ratio')),
    Used('nova.scheduler.host_manager', 'HostState',
         (Feature.POLICIES, Feature.LIMITS), ('allocation_candidates',)),
    Used('nova.scheduler.host_manager', 'HostState.consume_from_request',
         (Feature.POLICIES, Feature.LIMITS), ('spec_obj',)),
    # Its parameters do not show: oslo.messaging wraps it in (*args, **kwargs).
    Used('nova.scheduler.manager', 'SchedulerManager.select_destinations',
         (Feature.JOURNAL, Feature.LIMITS)),
    Used('nova.scheduler.manager', 'host_manager.HostManager', _JOURNAL,
         ('enabled_filters',)),
    Used('nova.scheduler.manager',
         'report.SchedulerReportClient.get_allocation_candidates',
         (Feature.JOURNAL, Feature.LIMITS), ('context', 'resources')),
    Used('nova.scheduler.utils', 'ResourceRequest.to_querystring', _JOURNAL),
    Used('nova.pci.stats', 'PciDeviceStats', _POLICIES, ('pools',)),
    Used('nova.exception', 'NoValidHost',
         (Feature.REASONS, Feature.JOURNAL)),
    # NOTE: Private before ae064caf16 (bug 2102038, Nova 32.0.0 and 31.3.1).
    Used('nova.pci.request', 'get_alias_from_config|_get_alias_from_config',
         (Feature.ALIASES,)),
    Used('nova.exception', 'PciInvalidAlias', (Feature.ALIASES,)),
    _object('RequestSpec', _ALL, 'image', 'instance_uuid', 'numa_topology',
            'project_id', 'requested_destination'),
    _object('RequestSpec', _POLICIES, 'network_metadata', 'pci_requests'),
    _object('RequestSpec', _LIMITS, 'requested_networks', 'security_groups'),
    _object('RequestSpec', _EXTRA_SPECS, 'flavor'),
    _object('Flavor', _EXTRA_SPECS, 'extra_specs'),
    _object('Flavor', _ALL, 'flavorid', 'memory_mb', 'name', 'vcpus'),
    _object('Aggregate', _ALL, 'metadata'),
    _object('ImageMeta', _POLICIES, 'properties'),
    _object('Destination', _POLICIES, 'allow_cross_cell_move', 'cell'),
    _object('NetworkRequest', _LIMITS, 'device_profile', 'network_id',
            'pci_request_id', 'port_id'),
    _object('NetworkRequestList', _LIMITS, 'objects'),
    _object('SecurityGroup', _LIMITS, 'name', 'uuid'),
    _object('SecurityGroupList', _LIMITS, 'objects'),
    _object('InstancePCIRequests', _POLICIES, 'requests'),
    _object('InstancePCIRequest', _POLICIES, 'NEUTRON_PORT', 'count',
            'numa_policy', 'request_id', 'source', 'spec'),
    _object('InstancePCIRequest', (Feature.ALIASES,), 'alias_name'),
    _object('NUMATopology', _POLICIES, 'cells'),
    _object('NUMACell', _POLICIES, 'cpu_usage', 'cpuset', 'id', 'memory',
            'memory_usage', 'mempages', 'network_metadata', 'pcpuset',
            'pinned_cpus', 'siblings', 'socket'),
    _object('NUMAPagesTopology', _POLICIES, 'reserved', 'size_kb', 'total',
            'used'),
    _object('NetworkMetadata', _POLICIES, 'physnets', 'tunneled'),
    _object('NUMATopologyLimits', _POLICIES, 'cpu_allocation_ratio',
            'network_metadata', 'ram_allocation_ratio'),
    _object('InstanceNUMATopology', _POLICIES, 'cells',
            'emulator_threads_policy'),
    _object('InstanceNUMACell', _POLICIES, 'cpu_policy', 'cpu_thread_policy',
            'cpuset', 'id', 'memory', 'pagesize', 'pcpuset'),
    Used('nova.compute.claims', 'Claim._test_numa_topology',
         _PREDICTION, ('compute_node', 'limit')),
    Used('nova.objects', 'fields.CPUAllocationPolicy.DEDICATED', _PREDICTION),
    Used('nova.virt.hardware', 'numa_fit_instance_to_host', _PREDICTION),
    _object('ComputeNode', _PREDICTION, 'numa_topology'),
    _object('Instance', _PREDICTION, 'numa_topology'),
    _object('Instance', _LIMITS, 'host', 'info_cache'),
    _object('Instance', _LIVE, 'task_state'),
    _object('InstanceInfoCache', _LIMITS, 'network_info'),
    _object('InstanceMapping', _LIMITS, 'cell_mapping', 'instance_uuid',
            'queued_for_delete'),
    Used('nova.objects', 'CellMapping.is_cell0', _LIMITS),
    Used('nova.compute.task_states', 'MIGRATING', _LIVE),
    Used('nova.conductor.tasks.live_migrate',
         'LiveMigrationTask._find_destination', _LIVE),
    _object('SchedulerLimits', _LIVE),
    _object('Selection', _LIVE, 'limits', 'nodename', 'service_host'),
    Used('nova.context', 'get_admin_context', _LIMITS),
    Used('nova.exception', 'CellTimeout', _LIMITS),
    Used('nova.context', 'scatter_gather_cells', _LIMITS,
         ('context', 'cell_mappings', 'timeout', 'fn')),
    Used('nova.context', 'target_cell', _LIMITS, ('context', 'cell_mapping')),
    Used('nova.objects', 'CellMappingList.get_all', _LIMITS),
    _object('Instance.get_by_uuid', _LIMITS, 'uuid'),
    _object('InstanceList.get_by_filters', _LIMITS, 'filters'),
    _object('InstanceMapping.get_by_instance_uuid', _LIMITS, 'instance_uuid'),
    _object('InstanceMappingList.get_by_instance_uuids', _LIMITS, 'uuids'),
    Used('keystoneauth1.adapter', 'Adapter', _LIMITS),
    *(Used('keystoneauth1.exceptions', name, _LIMITS) for name in (
        'ClientException', 'EndpointNotFound', 'HttpError', 'Unauthorized',
        'UnknownConnectionError')),
    Used('keystoneauth1.exceptions', 'UnknownConnectionError', _LIMITS,
         ('original',)),
    Used('keystoneauth1.loading', 'load_auth_from_conf_options', _LIMITS,
         ('conf', 'group')),
    # NOTE: keystoneauth1 of OpenStack 2024.1 (Nova 29) hides its parameters.
    Used('keystoneauth1.loading', 'load_session_from_conf_options', _LIMITS),
    Used('keystoneauth1.loading', 'load_adapter_from_conf_options', _LEDGER),
    Used('keystoneauth1.session', 'Session', _LIMITS,
         ('redirect', 'session', 'timeout')),
    Used('keystoneauth1.session', 'Session.request', _LIMITS,
         ('log', 'redirect')),
    Used('keystoneauth1.session', 'TCPKeepAliveAdapter.init_poolmanager',
         _LEDGER),
    Used('openstack.connection', 'Connection', _LIMITS),
    Used('openstack.connection', 'Connection.__init__', _LIMITS,
         ('oslo_conf', 'service_types', 'session')),
    Used('openstack.exceptions', 'SDKException', _LIMITS),
    Used('openstack.proxy', 'Proxy', _LIMITS),
    Used('requests', 'Response', _LIMITS, ('elapsed', 'encoding', 'raw')),
    Used('requests', 'Session', _LIMITS, ('adapters', 'headers', 'hooks')),
    Used('requests.exceptions', 'RequestException', _LIMITS),
    Used('requests.exceptions', 'SSLError', _LIMITS),
    Used('urllib3.exceptions', 'ProtocolError', _LIMITS),
    Used('urllib3', 'HTTPResponse', _LIMITS, ('close', 'length_remaining')),
    Used('urllib3', 'HTTPResponse.read', _LIMITS, ('amt', 'decode_content')),
    Used('urllib3.util', 'parse_url', _LIMITS, ('url',)),
)


def _reads_fields() -> bool:
    """Return whether the extra specs of a flavor are where they are read."""
    objects = importlib.import_module('nova.objects')
    extra_specs = {'key': 'value'}
    return fields.get(objects.Flavor(extra_specs=extra_specs),
                      'extra_specs') == extra_specs


def _takes_options() -> bool:
    """Return whether the client of Neutron takes the options of a request."""
    from openstack import proxy
    options = {'params': [], 'timeout': 60.0, 'log': False, 'redirect': False,
               'headers': {}}
    for method, args in ((proxy.Proxy.get, ('/ports',)),
                         (proxy.Proxy.request, ('/ports', 'GET'))):
        inspect.signature(method).bind(None, *args, **options)
    return True


#: What does not show in names.
TRIALS = (
    Trial('fields of versioned objects', _reads_fields, _EXTRA_SPECS),
    Trial('options of openstack.proxy.Proxy.get', _takes_options, _LIMITS),
)


def missing(used: Iterable[Used] | None = None) -> list[MissingInterface]:
    """Return what is used and not there, by default also by ``TRIALS``."""
    # Sets the classes as attributes of nova.objects.
    importlib.import_module('nova.objects').register_all()
    absent = []
    for item in INTERFACES if used is None else used:
        try:
            lacking = min((_missing_parts(item, name)
                           for name in item.name.split('|')), key=len)
        except Exception as exc:
            lacking = [f'{item.module}.{item.name} '
                       f'({type(exc).__name__}: {exc})']
        absent += [MissingInterface(what, item.features) for what in lacking]
    for trial in TRIALS if used is None else ():
        try:
            problem = None if trial.works() else 'another result'
        except Exception as exc:
            problem = f'{type(exc).__name__}: {exc}'
        if problem is not None:
            absent.append(MissingInterface(
                f'{trial.what} ({problem})', trial.features))
    return absent


def _missing_parts(item: Used, name: str) -> list[str]:
    value: ty.Any = importlib.import_module(item.module)
    for part in name.split('.'):
        if not hasattr(value, part):
            return [f'{item.module}.{item.name}']
        value = getattr(value, part)
    if inspect.isclass(value):
        code = getattr(value.__init__, '__code__', None)
        there = {*dir(value), *(code.co_names if code is not None else ())}
        kind = 'attribute'
    elif item.has:
        # Those of the wrapped function if functools.wraps was used.  The names
        # must be there, even if any are taken: calls are bound by them.
        there = set(inspect.signature(value).parameters)
        kind = 'parameter'
    return [f'{item.module}.{name}: {kind} {member}'
            for member in item.has if member not in there]
