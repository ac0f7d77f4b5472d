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

"""JSON schemas of a cloud file.

They say which keys there are and of which type.  What keys mean for each
other is the loader's business.
"""

_NAME = {'type': 'string', 'minLength': 1}
_COUNT = {'type': 'integer', 'minimum': 0}
_NODE = {'type': 'integer', 'minimum': 0}
_NODES = {'type': 'array', 'items': _NODE}
_PER_NODE_COUNT = {'type': ['integer', 'array'], 'minimum': 0,
                   'items': _COUNT, 'minItems': 1}
_SIZE = {'type': ['integer', 'string'], 'minimum': 0}
_PER_NODE_SIZE = {'type': ['integer', 'string', 'array'], 'minimum': 1,
                  'items': _SIZE, 'minItems': 1}
_PAGES = {'type': 'object', 'additionalProperties': _COUNT}
_PER_NODE_PAGES = {'type': ['object', 'array'],
                   'additionalProperties': _COUNT,
                   'items': _PAGES, 'minItems': 1}
_RATIO = {'type': 'number', 'exclusiveMinimum': 0, 'maximum': 10000}
_BOOL = {'type': 'boolean'}
_TEXT_VALUES = {'type': 'object', 'additionalProperties': {
    'type': ['string', 'integer', 'number', 'boolean']}}
_NAMES = {'type': ['string', 'array'], 'minLength': 1, 'minItems': 1,
          'items': _NAME}
_NAME_LIST = {'type': 'array', 'items': _NAME}
_PCI_ID = {'type': 'string', 'pattern': '^[0-9a-fA-F]{4}$'}
_PCI_KIND = {'enum': ['VF', 'PF', 'standard']}
_NUMA_POLICY = {'enum': ['required', 'socket', 'preferred', 'legacy']}
_LOAD = {'type': 'integer', 'minimum': 0, 'maximum': 100000}
_LOCALITY = {'enum': ['local', 'partial', 'remote']}

_PCI_DEVICE = {
    'type': 'object',
    'additionalProperties': False,
    'required': ['type', 'node'],
    'properties': {
        'type': _PCI_KIND,
        'node': {'type': ['integer', 'null'], 'minimum': 0},
        'count': {'type': 'integer', 'minimum': 1, 'maximum': 1024},
        'vfs': {'type': 'integer', 'minimum': 0, 'maximum': 240},
        'vendor': _PCI_ID,
        'product': _PCI_ID,
        'vf_product': _PCI_ID,
        'physical_network': _NAME,
        'trusted': _BOOL,
        'live_migratable': _BOOL,
        'resource_class': _NAME,
        'traits': _NAME_LIST,
    },
}

_PCI_ALIAS = {
    'type': 'object',
    'additionalProperties': False,
    'required': ['type'],
    'properties': {
        'type': _PCI_KIND,
        'numa_policy': _NUMA_POLICY,
        'vendor': _PCI_ID,
        'product': _PCI_ID,
        'live_migratable': _BOOL,
        'resource_class': _NAME,
        'traits': _NAME_LIST,
    },
}

_HOST = {
    'type': 'object',
    'additionalProperties': False,
    'required': ['name', 'cores', 'memory'],
    'properties': {
        'name': _NAME,
        'count': {'type': 'integer', 'minimum': 1, 'maximum': 100000},
        'numa_nodes': {'type': 'integer', 'minimum': 1, 'maximum': 64},
        'nodes_per_socket': {'type': 'integer', 'minimum': 1},
        'cores': {'type': ['integer', 'array'], 'minimum': 1, 'minItems': 1,
                  'items': {'type': 'integer', 'minimum': 1}},
        'threads': {'type': 'integer', 'minimum': 1, 'maximum': 8},
        'siblings': {'enum': ['split', 'adjacent']},
        'memory': _PER_NODE_SIZE,
        'pages': _PER_NODE_PAGES,
        'reserved_pages': _PER_NODE_PAGES,
        'reserved_memory': _SIZE,
        'disk': _SIZE,
        'platform_cores': _COUNT,
        'vswitch_cores': _PER_NODE_COUNT,
        'shared_cores_per_node': _PER_NODE_COUNT,
        'dedicated_cpus': {'type': ['string', 'integer']},
        'shared_cpus': {'type': ['string', 'integer']},
        'legacy_pinning': _BOOL,
        'switch_nodes': _NODES,
        'places': {'type': 'object', 'additionalProperties': _NODES},
        'node_labels': _BOOL,
        'physical_networks': {'type': 'object',
                              'additionalProperties': _NODES},
        'tunnel_nodes': _NODES,
        'cpu_allocation_ratio': _RATIO,
        'ram_allocation_ratio': _RATIO,
        'disk_allocation_ratio': _RATIO,
        'traits': _NAME_LIST,
        'pci_devices': {'type': 'array', 'items': _PCI_DEVICE},
        'disabled': _BOOL,
        'dhcp_servers': _LOAD,
        'routers': {
            **_LOAD, 'type': ['integer', 'object'],
            'additionalProperties': False,
            'required': ['count'],
            'properties': {'count': _LOAD, 'ports': _LOAD},
        },
        'other_ports': _LOAD,
    },
}

_FLAVOR = {
    'type': 'object',
    'additionalProperties': False,
    'required': ['vcpus', 'memory'],
    'properties': {
        'vcpus': {'type': 'integer', 'minimum': 1},
        'memory': {'type': ['integer', 'string'], 'minimum': 1},
        'disk': _SIZE,
        'extra_specs': _TEXT_VALUES,
        'validate': _BOOL,
    },
}

CLOUD = {
    'type': 'object',
    'additionalProperties': False,
    'required': ['hosts', 'flavors', 'steps'],
    'properties': {
        'description': {'type': 'string'},
        'options': {'type': 'object', 'additionalProperties': {
            'type': 'object'}},
        'filters': _NAME_LIST,
        'pci_in_placement': _BOOL,
        'pci_aliases': {'type': 'object',
                        'additionalProperties': _PCI_ALIAS},
        'hosts': {'type': 'array', 'items': _HOST, 'minItems': 1},
        'aggregates': {'type': 'array', 'items': {
            'type': 'object',
            'additionalProperties': False,
            'required': ['name', 'hosts'],
            'properties': {
                'name': _NAME,
                'hosts': _NAMES,
                'metadata': _TEXT_VALUES,
            },
        }},
        'flavors': {'type': 'object', 'additionalProperties': _FLAVOR,
                    'minProperties': 1},
        'images': {'type': 'object', 'additionalProperties': _TEXT_VALUES},
        'networks': {'type': 'object', 'additionalProperties': {
            'type': 'object',
            'additionalProperties': False,
            'properties': {
                'physical_network': _NAME,
                'tunneled': _BOOL,
                'vnic_type': {'enum': ['normal', 'direct',
                                       'direct-physical']},
                'numa_policy': _NUMA_POLICY,
            },
        }},
        'security_groups': {'type': 'object', 'additionalProperties': {
            'type': 'object',
            'additionalProperties': False,
            'properties': {'ingress': _LOAD, 'egress': _LOAD},
        }},
        'network_service': {'enum': ['ovs', 'ovn', 'none']},
        'server_groups': {'type': 'object', 'additionalProperties': {
            'type': 'object',
            'additionalProperties': False,
            'required': ['policy'],
            'properties': {
                'policy': {'enum': ['affinity', 'anti-affinity',
                                    'soft-affinity',
                                    'soft-anti-affinity']},
                'max_server_per_host': {'type': 'integer', 'minimum': 1},
            },
        }},
        'steps': {'type': 'array', 'items': {
            'type': 'object', 'minProperties': 1}},
    },
}

_EXPECT_KEYS = {
    'placed': {'type': ['integer', 'boolean'], 'minimum': 0},
    'refused': {'type': ['integer', 'boolean'], 'minimum': 0},
    'host': _NAMES,
    'not_host': _NAMES,
    'nodes': _NODES,
    'nodes_in': _NODES,
    'vswitch': _LOCALITY,
    'places': {'type': 'object', 'minProperties': 1,
               'additionalProperties': _LOCALITY},
    'pci': _LOCALITY,
    'pci_devices': {'type': 'object', 'additionalProperties': _COUNT},
    'cores': _COUNT,
    'reason': _NAME,
}

_HOST_COUNTS = {'type': 'object', 'minProperties': 1,
                'additionalProperties': _COUNT}

_EXPECT = {
    'type': 'object',
    'additionalProperties': False,
    'minProperties': 1,
    'properties': {
        **_EXPECT_KEYS,
        'ports': _HOST_COUNTS,
        'rules': _HOST_COUNTS,
        'servers': {'type': 'object', 'additionalProperties': {
            'type': 'object',
            'additionalProperties': False,
            'minProperties': 1,
            'properties': _EXPECT_KEYS,
        }},
    },
}

_SECURITY_GROUPS = {**_NAME_LIST, 'minItems': 1}
_PORTS = {'network': _NAME,
          'count': {'type': 'integer', 'minimum': 1, 'maximum': 1000},
          'expect': _EXPECT}
_MOVE = {'host': _NAME, 'expect': _EXPECT}

_STEP_KEYS = {
    'boot': {
        'flavor': _NAME,
        'count': {'type': 'integer', 'minimum': 1, 'maximum': 100000},
        'multi_create': _BOOL,
        'image': _NAME,
        'networks': _NAME_LIST,
        'security_groups': _SECURITY_GROUPS,
        'host': _NAME,
        'force': _NAME,
        'ignore_hosts': _NAME_LIST,
        'availability_zone': _NAME,
        'group': _NAME,
        'expect': _EXPECT,
    },
    'delete': {'expect': _EXPECT},
    'cold_migrate': {**_MOVE, 'confirm': _BOOL, 'revert': _BOOL},
    'resize': {**_MOVE, 'flavor': _NAME, 'same_host': _BOOL,
               'confirm': _BOOL, 'revert': _BOOL},
    'confirm': {'expect': _EXPECT},
    'revert': {'expect': _EXPECT},
    'live_migrate': _MOVE,
    'evacuate': _MOVE,
    'shelve': {'expect': _EXPECT},
    'unshelve': _MOVE,
    'rebuild': {'image': _NAME, 'expect': _EXPECT},
    'attach': {**_PORTS, 'security_groups': _SECURITY_GROUPS},
    'detach': _PORTS,
    'host_down': {},
    'host_up': {},
    'neutron': {'neutron': {'enum': ['up', 'stale', 'down']}},
}

_STEP_REQUIRED = {'boot': ['flavor'], 'resize': ['flavor'],
                  'attach': ['network'], 'detach': ['network']}

#: Schema of a step by its action.
STEPS = {
    action: {
        'type': 'object',
        'additionalProperties': False,
        'required': [action, *_STEP_REQUIRED.get(action, ())],
        'properties': {action: _NAME if action == 'boot' else _NAMES, **keys},
    }
    for action, keys in _STEP_KEYS.items()
}
