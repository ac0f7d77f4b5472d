# SPDX-License-Identifier: Apache-2.0
"""The compute nodes of a bed, as a YAML file describes them.

Read by the bed, for the configuration of the compute nodes, and by their
driver, which reports what is in it.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import pathlib

import jsonschema
import yaml

from nfv_sched.tests.live.bed import errors

DEFAULT = pathlib.Path(__file__).with_name('cloud.yaml')

VSWITCH_LABEL = 'nfv_vswitch'
NODE_LABEL = 'nfv_node%d'
PLACE_LABEL = 'nfv_%s'

#: Metadata of a server: seconds that its live migration copies memory.
MIGRATION_SECONDS = 'live_migration_seconds'

VENDOR = '8086'
PF_PRODUCT = '1572'
VF_PRODUCT = '154c'

_COUNT = {'type': 'integer', 'minimum': 0}
_NODES = {'type': 'array', 'items': _COUNT}
_SCHEMA = {
    'type': 'object',
    'required': ['hosts'],
    'additionalProperties': False,
    'properties': {'hosts': {
        'type': 'object',
        'minProperties': 1,
        # As hosts can be called.
        'propertyNames': {'pattern': '^[A-Za-z0-9][A-Za-z0-9.-]*$'},
        'additionalProperties': {
            'type': 'object',
            'required': ['numa_nodes'],
            'additionalProperties': False,
            'properties': {
                'numa_nodes': {
                    'type': 'array',
                    'minItems': 1,
                    'items': {
                        'type': 'object',
                        'required': ['cores', 'memory_mb'],
                        'additionalProperties': False,
                        'properties': {
                            'socket': _COUNT,
                            'cores': {'type': 'integer', 'minimum': 1},
                            'threads': {'type': 'integer', 'minimum': 1},
                            'shared_cpus': _COUNT,
                            'memory_mb': {'type': 'integer', 'minimum': 1},
                            'pages_2m': _COUNT,
                            'pages_1g': _COUNT,
                        },
                    },
                },
                'disk_gb': {'type': 'integer', 'minimum': 1},
                'vswitch': _NODES,
                'places': {'type': 'object',
                           'additionalProperties': _NODES},
                'node_labels': {'type': 'boolean'},
                'physnets': {'type': 'object',
                             'additionalProperties': _NODES},
                'pci': {
                    'type': 'array',
                    'items': {
                        'type': 'object',
                        'required': ['bus', 'numa_node'],
                        'additionalProperties': False,
                        'properties': {
                            'bus': {'type': 'string',
                                    'pattern': '^[0-9a-f]{2}$'},
                            'numa_node': _COUNT,
                            'vfs': {'type': 'integer', 'minimum': 0,
                                    'maximum': 63},
                            'physical_network': {'type': 'string'},
                            'product_id': {'type': 'string',
                                           'pattern': '^[0-9a-f]{4}$'},
                        },
                    },
                },
            },
        },
    }},
}


@dataclasses.dataclass(frozen=True, slots=True)
class NUMANode:
    """One NUMA node of a host.

    :param cores: physical cores
    :param threads: threads of each core
    :param shared_cpus: how many of its CPUs, from the first, are shared
    :param memory_mb: all its memory in MiB, huge pages included
    """

    socket: int
    cores: int
    memory_mb: int
    threads: int = 1
    shared_cpus: int = 0
    pages_2m: int = 0
    pages_1g: int = 0

    @property
    def cpus(self) -> int:
        return self.cores * self.threads


@dataclasses.dataclass(frozen=True, slots=True)
class NIC:
    """A PCI device: a NIC with virtual functions, or one without.

    :param bus: number of the bus, two hexadecimal digits
    :param product_id: of the device; that of a NIC's physical function if
        none is given
    """

    bus: str
    numa_node: int
    vfs: int = 0
    physical_network: str | None = None
    product_id: str = PF_PRODUCT


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    name: str
    numa_nodes: Sequence[NUMANode]
    disk_gb: int
    physnets: Mapping[str, Sequence[int]]
    pci: Sequence[NIC]

    @property
    def vcpus(self) -> int:
        """Shared CPUs."""
        return sum(node.shared_cpus for node in self.numa_nodes)

    @property
    def pcpus(self) -> int:
        """Dedicated CPUs."""
        return sum(node.cpus for node in self.numa_nodes) - self.vcpus

    @property
    def threads(self) -> int:
        """Most threads of any core."""
        return max(node.threads for node in self.numa_nodes)

    @property
    def memory_mb(self) -> int:
        return sum(node.memory_mb for node in self.numa_nodes)


def _host(name: str, entry: Mapping) -> Host:
    nodes = tuple(NUMANode(**{'socket': index, **node})
                  for index, node in enumerate(entry['numa_nodes']))
    physnets = dict(entry.get('physnets', {}))
    if entry.get('vswitch'):
        physnets[VSWITCH_LABEL] = entry['vswitch']
    physnets.update((PLACE_LABEL % place, where)
                    for place, where in entry.get('places', {}).items())
    if entry.get('node_labels', True):
        physnets.update((NODE_LABEL % index, [index])
                        for index in range(len(nodes)))
    nics = tuple(NIC(**nic) for nic in entry.get('pci', ()))
    named = {node for nodes in physnets.values() for node in nodes}
    named |= {nic.numa_node for nic in nics}
    if named and max(named) >= len(nodes):
        raise errors.BedError(
            f'host {name} has no NUMA node {max(named)}, which its networks '
            'or devices name')
    for index, node in enumerate(nodes):
        if node.shared_cpus > node.cpus:
            raise errors.BedError(
                f'NUMA node {index} of host {name} has {node.cpus} CPUs, '
                f'and {node.shared_cpus} of them shared')
        if node.pages_2m * 2 + node.pages_1g * 1024 > node.memory_mb:
            raise errors.BedError(
                f'NUMA node {index} of host {name} has more huge pages than '
                'memory')
    return Host(name, nodes, entry.get('disk_gb', 500), physnets, nics)


def load(path: pathlib.Path) -> dict[str, Host]:
    """Read a description: hosts by name, in their order.

    :raises BedError: if it cannot be read or makes no sense
    """
    try:
        text = yaml.safe_load(path.read_text())
        jsonschema.validate(text, _SCHEMA)
        return {name: _host(name, entry)
                for name, entry in text['hosts'].items()}
    except (OSError, yaml.YAMLError) as exc:
        raise errors.BedError(f'{path} cannot be read: {exc}')
    except jsonschema.ValidationError as exc:
        raise errors.BedError(f'{path}: {exc.json_path}: {exc.message}')
    except errors.BedError as exc:
        raise errors.BedError(f'{path}: {exc}')
