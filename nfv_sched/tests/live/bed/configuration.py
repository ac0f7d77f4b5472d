# SPDX-License-Identifier: Apache-2.0
"""Configuration files of the services of OpenStack."""

from collections.abc import Mapping
from importlib import metadata
import json
import pathlib
import shutil
import sys

from nfv_sched.tests.live.bed import catalogue
from nfv_sched.tests.live.bed import cloud as bed_cloud
from nfv_sched.tests.live.bed import layout as bed_layout
from nfv_sched.tests.live.bed import ports

SCHEDULERS = ('scheduler1', 'scheduler2')
SCHEDULER_WORKERS = 2
PHYSNETS = {'physnet0': '100:199', 'physnet1': '200:299'}

REPORT_INTERVAL = 3
SERVICE_DOWN_TIME = 12
RPC_TIMEOUT = 40
AGENT_DOWN_TIME = 15

# What stock Nova would run, but for NFVTopologyFilter, which takes the place
# of NUMATopologyFilter.
_BASE_FILTERS = (
    'ComputeFilter', 'ComputeCapabilitiesFilter', 'ImagePropertiesFilter',
    'ServerGroupAntiAffinityFilter', 'ServerGroupAffinityFilter',
    'PciPassthroughFilter')
# Nothing of Nova may be imported here: nova-compute chooses its threads first.
_FILTERS = (*_BASE_FILTERS, *sorted(
    metadata.entry_points(group='nfv_sched.filters').names))
_STOCK_FILTERS = _BASE_FILTERS + ('NUMATopologyFilter',)

_DIST_INFO = {
    'METADATA': 'Metadata-Version: 2.1\nName: nfv-sched-live\nVersion: 0\n',
    'RECORD': '',
    'entry_points.txt': (
        '[neutron.ml2.mechanism_drivers]\n'
        'bindall = '
        'nfv_sched.tests.live.bed.mechanism:BindAllMechanismDriver\n'),
}

Sections = Mapping[str, Mapping[str, object]]


def _write(path: pathlib.Path, *parts: Sections) -> None:
    """Write an INI file from sections; later ones add to earlier ones.

    An option with a list of values is written once for each: oslo.config has
    such options, which configparser does not know.
    """
    sections: dict[str, dict[str, object]] = {}
    for part in parts:
        for name, options in part.items():
            sections.setdefault(name, {}).update(options)
    lines = []
    for name, options in sections.items():
        lines.append(f'[{name}]')
        for option, value in options.items():
            values = value if isinstance(value, list) else [value]
            lines += [f'{option} = {_text(value)}' for value in values]
        lines.append('')
    path.parent.mkdir(exist_ok=True)
    path.touch(mode=0o600)
    path.write_text('\n'.join(lines))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _paste(service: str, name: str, target: pathlib.Path) -> None:
    target.mkdir(exist_ok=True)
    shutil.copy(pathlib.Path(sys.prefix) / 'etc' / service / name, target)


class _Writer:
    def __init__(self, layout: bed_layout.Layout,
                 hosts: Mapping[str, bed_cloud.Host]):
        self._layout = layout
        self._hosts = hosts

    def write(self) -> None:
        self._entry_point()
        self._keystone()
        self._placement()
        self._glance()
        self._neutron()
        self._nova()

    def _entry_point(self) -> None:
        directory = self._layout.etc / 'python' / 'nfv_sched_live.dist-info'
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in _DIST_INFO.items():
            (directory / name).write_text(text)

    def _state(self, *names: str) -> pathlib.Path:
        path = self._layout.state.joinpath(*names)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _database(self, name: str) -> dict[str, object]:
        return {'connection': self._layout.database_url(name),
                'max_pool_size': 5, 'max_overflow': 50,
                'max_retries': -1, 'retry_interval': 1}

    def _user(self, name: str) -> dict[str, object]:
        return {
            'auth_url': self._layout.url('keystone', '/v3'),
            'auth_type': 'password',
            'username': name,
            'password': self._layout.password,
            'user_domain_id': 'default',
            'project_name': 'service',
            'project_domain_id': 'default',
            'region_name': bed_layout.REGION,
        }

    def _client(self, name: str) -> dict[str, object]:
        return {**self._user(name), 'valid_interfaces': 'internal'}

    def _authtoken(self, name: str) -> Sections:
        return {'keystone_authtoken': {
            **self._user(name),
            'www_authenticate_uri': self._layout.url('keystone', '/v3'),
            'interface': 'internal',
            'service_token_roles': 'service',
            'service_token_roles_required': True,
        }}

    def _broker(self) -> Sections:
        return {
            'DEFAULT': {'transport_url': self._layout.transport_url,
                        'rpc_response_timeout': RPC_TIMEOUT},
            'oslo_messaging_rabbit': {'rabbit_retry_interval': 1,
                                      'rabbit_retry_backoff': 1,
                                      'rabbit_interval_max': 2},
            'oslo_messaging_notifications': {'driver': 'noop'},
        }

    def _keystone(self) -> None:
        keys = self._state('keystone')
        _write(self._layout.etc / 'keystone' / 'keystone.conf', {
            'DEFAULT': {'use_stderr': True},
            'database': self._database('keystone'),
            'token': {'provider': 'fernet', 'expiration': 86400},
            'fernet_tokens': {'key_repository': keys / 'fernet-keys'},
            'fernet_receipts': {'key_repository': keys / 'fernet-keys'},
            'credential': {'key_repository': keys / 'credential-keys'},
            'cache': {'enabled': True, 'backend': 'dogpile.cache.memory'},
            # A request that reads a user while another one changes it may
            # leave what was before in the cache, for ten minutes.
            'identity': {'caching': False},
        })

    def _placement(self) -> None:
        _write(self._layout.etc / 'placement' / 'placement.conf', {
            'DEFAULT': {'use_stderr': True,
                        'state_path': self._state('placement')},
            'api': {'auth_strategy': 'keystone'},
            # With more, Placement grants more than there is: see the
            # documentation of the ledger.
            'placement': {'allocation_conflict_retry_count': 1},
            'placement_database': self._database('placement'),
        }, self._authtoken('placement'))

    def _glance(self) -> None:
        etc = self._layout.etc / 'glance'
        _paste('glance', 'glance-api-paste.ini', etc)
        stores = {section: {'filesystem_store_datadir':
                            self._state('glance', section)}
                  for section in ('files', 'os_glance_staging_store',
                                  'os_glance_tasks_store')}
        _write(etc / 'glance-api.conf', {
            'DEFAULT': {'use_stderr': True, 'enabled_backends': 'files:file',
                        'worker_self_reference_url':
                            self._layout.url('glance')},
            'database': self._database('glance'),
            'paste_deploy': {'flavor': 'keystone',
                             'config_file': etc / 'glance-api-paste.ini'},
            'glance_store': {'default_backend': 'files'},
        }, stores, self._broker(), self._authtoken('glance'))

    def _neutron(self) -> None:
        etc = self._layout.etc / 'neutron'
        _paste('neutron', 'api-paste.ini', etc)
        state = self._state('neutron')
        _write(etc / 'neutron.conf', self._broker(), {
            'DEFAULT': {
                'use_stderr': True,
                'state_path': state,
                'api_paste_config': etc / 'api-paste.ini',
                'core_plugin': 'ml2',
                'service_plugins': 'router',
                'auth_strategy': 'keystone',
                'rpc_workers': 1,
                'rpc_state_report_workers': 0,
                'dhcp_agent_notification': False,
                'agent_down_time': AGENT_DOWN_TIME,
            },
            'database': self._database('neutron'),
            'oslo_concurrency': {'lock_path': state / 'lock'},
            'quotas': {f'quota_{name}': -1 for name in (
                'port', 'network', 'subnet', 'security_group',
                'security_group_rule')},
            'nova': self._client('nova'),
            'placement': self._client('placement'),
        }, self._authtoken('neutron'), {
            # So that a user who is disabled is refused soon.
            'keystone_authtoken': {'token_cache_time': 10},
        })
        _write(etc / 'ml2_conf.ini', {
            'ml2': {'type_drivers': 'flat,vlan,vxlan,local',
                    'tenant_network_types': 'vxlan',
                    'mechanism_drivers': 'bindall',
                    'extension_drivers': 'port_security'},
            'ml2_type_flat': {'flat_networks': '*'},
            'ml2_type_vlan': {'network_vlan_ranges': ','.join(
                f'{name}:{vlans}' for name, vlans in PHYSNETS.items())},
            'ml2_type_vxlan': {'vni_ranges': '1:1000'},
        })

    def _nova(self) -> None:
        etc = self._layout.etc / 'nova'
        _paste('nova', 'api-paste.ini', etc)
        databases = {'api_database': self._database('nova_api'),
                     'database': self._database('nova')}
        common = self._nova_common()
        _write(etc / 'nova.conf', *common, self._nova_process('api'),
               databases)
        _write(etc / 'conductor.conf', *common,
               self._nova_process('conductor'), databases,
               {'conductor': {'workers': 1}})
        for name in SCHEDULERS:
            _write(etc / f'{name}.conf', *common, self._nova_process(name),
                   databases, self._scheduler())
            _write(etc / f'{name}-stock.conf', *common,
                   self._nova_process(name), databases, self._scheduler(),
                   self._stock_scheduler())
        for host in self._hosts.values():
            _write(etc / f'{host.name}.conf', *common,
                   self._nova_process(host.name), self._compute(host))
            shutil.copy(self._layout.cloud, self._state('nova', host.name))

    def _nova_common(self) -> tuple[Sections, ...]:
        aliases = [
            {'name': 'accelerator', 'vendor_id': bed_cloud.VENDOR,
             'product_id': '0435', 'device_type': 'type-PCI'},
            {'name': 'nic', 'vendor_id': bed_cloud.VENDOR,
             'product_id': bed_cloud.PF_PRODUCT, 'device_type': 'type-PF'},
            {'name': 'vf', 'vendor_id': bed_cloud.VENDOR,
             'product_id': bed_cloud.VF_PRODUCT, 'device_type': 'type-VF'},
        ]
        return self._broker(), {
            'DEFAULT': {
                'use_stderr': True,
                'my_ip': ports.ADDRESS,
                'report_interval': REPORT_INTERVAL,
                'service_down_time': SERVICE_DOWN_TIME,
                'allow_resize_to_same_host': True,
            },
            'api': {'auth_strategy': 'keystone'},
            'wsgi': {'api_paste_config':
                     self._layout.etc / 'nova' / 'api-paste.ini'},
            'cache': {'enabled': True, 'backend': 'oslo_cache.dict'},
            'glance': {'region_name': bed_layout.REGION,
                       'valid_interfaces': 'internal'},
            'pci': {'alias': [json.dumps(alias) for alias in aliases]},
            'quota': {'instances': -1, 'cores': -1, 'ram': -1},
            'scheduler': {'max_attempts': 10},
            'placement': self._client('placement'),
            'neutron': self._client('neutron'),
            'service_user': {**self._client('nova'),
                             'send_service_user_token': True},
            'vnc': {'enabled': False},
        }, self._authtoken('nova')

    def _nova_process(self, name: str) -> Sections:
        state = self._state('nova', name)
        return {'DEFAULT': {'host': name, 'state_path': state},
                'oslo_concurrency': {'lock_path': state / 'lock'}}

    def _scheduler(self) -> Sections:
        return {
            # One line for each request, with the time that it took.
            'DEFAULT': {'default_log_levels': ','.join((
                'amqp=WARN', 'amqplib=WARN', 'sqlalchemy=WARN',
                'oslo_messaging=INFO',
                'oslo_messaging._drivers.amqpdriver=DEBUG',
                'keystonemiddleware=WARN', 'keystoneauth=WARN',
                'oslo_policy=INFO', 'oslo.cache=INFO',
                'urllib3.connectionpool=WARN', 'stevedore=WARN'))},
            'scheduler': {'workers': SCHEDULER_WORKERS},
            'neutron': self._client(catalogue.SCHEDULER_USER),
            'workarounds': {'disable_fallback_pcpu_query': True},
            'filter_scheduler': {
                'available_filters': ['nova.scheduler.filters.all_filters',
                                      'nfv_sched.filters.all_filters'],
                'enabled_filters': ','.join(_FILTERS),
                'weight_classes': 'nova.scheduler.weights.all_weighers,'
                                  'nfv_sched.weights.all_weighers',
            },
            'nfv_sched': {
                'ledger': 'placement',
                'ledger_publish_interval': 5,
                'neutron_request_timeout': 15,
                'max_snapshot_age': 40,
            },
        }

    def _stock_scheduler(self) -> Sections:
        return {'filter_scheduler': {
            'available_filters': 'nova.scheduler.filters.all_filters',
            'enabled_filters': ','.join(_STOCK_FILTERS),
            'weight_classes': 'nova.scheduler.weights.all_weighers',
        }}

    def _compute(self, host: bed_cloud.Host) -> Sections:
        devices = []
        for nic in host.pci:
            spec = {'address': {'domain': '0000', 'bus': nic.bus,
                                'slot': '.*', 'function': '.*'}}
            if nic.physical_network:
                spec['physical_network'] = nic.physical_network
            devices.append(json.dumps(spec))
        physnets = {f'neutron_physnet_{name}': {
            'numa_nodes': ','.join(map(str, nodes))}
            for name, nodes in host.physnets.items()}
        return {
            'DEFAULT': {
                'compute_driver': 'live.LiveDriver',
                'update_resources_interval': 15,
                # As many as plan run begins.
                'max_concurrent_live_migrations': 4,
                'vif_plugging_timeout': 0,
                'vif_plugging_is_fatal': False,
                'reserved_host_memory_mb': 0,
                'initial_cpu_allocation_ratio': 4.0,
                'initial_ram_allocation_ratio': 1.0,
            },
            'neutron': {'physnets': ','.join(host.physnets)},
            'pci': {'device_spec': devices},
            **physnets,
        }


def write(layout: bed_layout.Layout,
          hosts: Mapping[str, bed_cloud.Host]) -> None:
    _Writer(layout, hosts).write()
