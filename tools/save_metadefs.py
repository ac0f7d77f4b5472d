#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write etc/nfv_sched/metadefs: Glance metadata definitions.

Horizon offers the keys of these definitions in Update Metadata of flavors,
images and host aggregates.  Glance's own definitions have none of the keys of
nfv-sched, and lack some of Nova's that network functions need.

No description is written twice.  Types and values that the Nova API checks
come from the validators of the installed Nova, including those of nfv-sched.
The keys of nfv-sched are described by their validators, metadata of aggregates
by the options that it overrides.  Only Nova's own keys are described here, in
:data:`NOVA_KEYS`.
"""

from collections.abc import Iterator, Mapping
import json
import pathlib
import re
import typing as ty

from nova.api.validation.extra_specs import validators as nova_validators
from oslo_config import cfg

from nfv_sched.base import conf
from nfv_sched.base import extra_specs
from nfv_sched.scheduler import validators

FOLDER = pathlib.Path(
    __file__).resolve().parents[1] / 'etc' / 'nfv_sched' / 'metadefs'

FLAVOR = 'OS::Nova::Flavor'
IMAGE = 'OS::Glance::Image'
AGGREGATE = 'OS::Nova::Aggregate'

_NOVA = 'hw:'
_NOVA_IMAGE = 'hw_'

#: Nova's extra specs that Glance does not define (or, for the CPU policy, not
#: with all values) -> description.
NOVA_KEYS = {
    'hw:numa_nodes': (
        'Number of NUMA nodes of the server. Each of them runs on a host NUMA '
        'node of its own.'),
    'hw:numa_cpus.{num}': (
        'vCPUs of the guest NUMA node, such as 0-3,8. Needed only if the '
        'nodes are not to be equal, and then for each of them.'),
    'hw:numa_mem.{num}': (
        'Memory of the guest NUMA node in MiB. Needed only if the nodes are '
        'not to be equal, and then for each of them.'),
    'hw:cpu_policy': (
        'How vCPUs get host CPUs. dedicated: each has one for itself. shared: '
        'they share some with other servers. mixed: those that the mask of '
        'dedicated vCPUs names are dedicated, the others shared.'),
    'hw:cpu_dedicated_mask': (
        'The dedicated vCPUs of a server with the CPU policy mixed, such as '
        '2-7, or ^0 for all but vCPU 0.'),
    'hw:cpu_realtime': (
        'Whether dedicated vCPUs get real-time priority: all of them with a '
        'policy for emulator threads, or those of the mask.'),
    'hw:cpu_realtime_mask': (
        'Which vCPUs get real-time priority, such as ^0 for all but vCPU 0, '
        'which does the housekeeping of the guest OS.'),
    'hw:emulator_threads_policy': (
        'Where the threads of the emulator run. share: on the shared CPUs of '
        'the host. isolate: on one more dedicated CPU. Without it they '
        'disturb the dedicated vCPUs.'),
    'hw:pci_numa_affinity_policy': (
        'How near to the server its PCI devices have to be. required: on a '
        'NUMA node of the server. socket: on its socket. preferred: anywhere, '
        'rather near. legacy: as required, but devices whose NUMA node is not '
        'known will do. The claim on the compute node follows this.'),
    'hw:locked_memory': (
        'Whether the memory of the server is kept from being swapped. Needs a '
        'page size.'),
}

#: Keys of :data:`NOVA_KEYS` that are also image properties.
OF_IMAGES = frozenset({
    'hw:numa_nodes', 'hw:numa_cpus.{num}', 'hw:numa_mem.{num}',
    'hw:cpu_policy', 'hw:cpu_realtime_mask', 'hw:pci_numa_affinity_policy',
    'hw:locked_memory',
})

# Sentence in the help of options that aggregates can override, and what may
# follow it.
_OVERRIDDEN = 'Can be overridden per aggregate by metadata of the same name'
_SEVERAL = re.compile(r';\s+of\s+(several\s+aggregates[^.]*)\.')

# Word in a name -> its spelling in a title.
_WORDS = {
    'cpu': 'CPU', 'cpus': 'CPUs', 'dhcp': 'DHCP', 'mem': 'memory',
    'nics': 'NICs', 'numa': 'NUMA', 'pci': 'PCI', 'realtime': 'real-time',
    'sriov': 'SR-IOV', 'vcpu': 'vCPU', 'vcpus': 'vCPUs', 'vfs': 'VFs',
    'vnics': 'vNICs', 'vswitch': 'vSwitch',
}


class Association(ty.NamedTuple):
    """A type of resource that a namespace applies to.

    :ivar resource: type of resource, such as :data:`FLAVOR`
    :ivar prefix: precedes the names of the properties; may be empty
    """

    resource: str
    prefix: str = ''


class Namespace(ty.NamedTuple):
    """A namespace of Glance's metadata definitions.

    :ivar file: name of its file
    :ivar name: unique in Glance, at most 80 characters
    :ivar title: display name in Horizon, at most 80 characters
    :ivar description: at most 500 characters
    :ivar associations: types of resources that it applies to
    :ivar properties: name -> JSON schema with title and description
    """

    file: str
    name: str
    title: str
    description: str
    associations: tuple[Association, ...]
    properties: Mapping[str, Mapping[str, ty.Any]]

    def text(self) -> str:
        """Return the file that ``glance-manage`` and Horizon import."""
        return json.dumps({
            'namespace': self.name,
            'display_name': self.title,
            'description': self.description,
            'visibility': 'public',
            'protected': True,
            'resource_type_associations': [
                {'name': resource, **({'prefix': prefix} if prefix else {})}
                for resource, prefix in self.associations],
            'properties': self.properties,
        }, indent=4) + '\n'


def namespaces() -> tuple[Namespace, ...]:
    """Return all namespaces.

    Glance has no patterns for names, so a key that ends with a parameter
    becomes a property for each example of the parameter.
    """
    return (
        Namespace(
            'nfv-placement.json', 'OS::Compute::NFVPlacement',
            'NFV Placement',
            'Which host NUMA nodes a server runs on: those of the virtual '
            'switch, of its PCI devices, of places that hosts declare. Kept '
            'by the filters of nfv-sched. The server needs a NUMA topology: '
            'hw:numa_nodes, hw:cpu_policy or hw:mem_page_size.',
            (Association(FLAVOR, extra_specs.NAMESPACE),),
            dict(_own_keys())),
        Namespace(
            'nfv-guest.json', 'OS::Compute::NFVGuest', 'NFV Guest',
            "NUMA nodes, CPUs, memory and PCI devices of a server: Nova's own "
            'keys.',
            (Association(FLAVOR, _NOVA), Association(IMAGE, _NOVA_IMAGE)),
            dict(_nova_keys(True))),
        Namespace(
            'nfv-guest-flavor.json', 'OS::Compute::NFVGuestFlavor',
            'NFV Guest (flavors only)',
            "CPUs of a server: those of Nova's own keys that are not for "
            'images.',
            (Association(FLAVOR, _NOVA),), dict(_nova_keys(False))),
        Namespace(
            'nfv-aggregate.json', 'OS::Compute::NFVAggregate',
            'NFV Limits and Weights',
            'Limits of hosts and multipliers of weighers. For the hosts of '
            'the aggregate they replace the options of the same name in '
            '[nfv_sched] of nova.conf.',
            (Association(AGGREGATE),), dict(_aggregate_metadata())),
    )


def _own_keys() -> Iterator[tuple[str, dict]]:
    """Yield properties for the keys of nfv-sched, without their synonyms."""
    for validator in validators.register():
        if validator.name.startswith(extra_specs.NAMESPACE):
            yield from _key(validator, extra_specs.NAMESPACE,
                            validator.description)


def _nova_keys(of_images: bool) -> Iterator[tuple[str, dict]]:
    """Yield properties for the extra specs of Nova.

    :param of_images: True for those that images can have, False for others
    """
    for name, description in NOVA_KEYS.items():
        if (name in OF_IMAGES) == of_images:
            yield from _key(nova_validators.VALIDATORS[name], _NOVA,
                            description)


def _key(validator, prefix: str,
         description: str) -> Iterator[tuple[str, dict]]:
    """Yield a property, or several for a key that ends with a parameter.

    Parameters of Nova's keys are numbers of guest NUMA nodes and have no
    examples, so those of ``validators.GUEST_NODES`` are used.

    :param prefix: prefix of the namespace, left out of the property's name
    """
    name = validator.name.removeprefix(prefix)
    stem, _brace, _rest = name.partition('.{')
    if stem == name:
        yield name, _property(_title(name), description, validator.value)
        return
    parameter, = validator.parameters
    ends = parameter.get('examples', validators.GUEST_NODES)
    for end, what in ends.items():
        yield f'{stem}.{end}', _property(
            f'{_title(stem)}, {what}',
            description.replace('{%s}' % parameter['name'], end),
            validator.value)


def _aggregate_metadata() -> Iterator[tuple[str, dict]]:
    """Yield properties for the options that aggregates can override."""
    (_group, options), = conf.list_opts()
    for option in options:
        text, overridden, rest = option.help.partition(_OVERRIDDEN)
        if not overridden:
            continue
        several = _SEVERAL.match(rest)
        if several:
            text += f'Of {several[1]}.'
        if isinstance(option, cfg.ListOpt):
            yield option.dest, _property(
                _title(option.dest),
                f'{text} A list with commas; an empty one overrides '
                'nova.conf, too.',
                {'type': str})
            continue
        # Limits are whole numbers, as their defaults are.
        value = {'type': int if isinstance(option.default, int) else float}
        if getattr(option.type, 'min', None) is not None:
            value['min'] = option.type.min
        yield option.dest, _property(
            _title(option.dest),
            f'{text} Default in nova.conf: {option.default:g}.', value)


def _property(title: str, description: str,
              value: Mapping[str, ty.Any]) -> dict[str, ty.Any]:
    """Return the JSON schema of a property, described in RST."""
    return {'title': title, 'description': _strip_markup(description),
            **_schema(value)}


def _schema(value: Mapping[str, ty.Any]) -> dict[str, ty.Any]:
    """Return the JSON schema for the values of a validator."""
    if value.get('pattern') == validators.NUMBER:
        return {'type': 'integer', 'minimum': 0, 'maximum': 9999}
    kind = value['type']
    if kind is bool:
        # Flavors and images store strings; Glance's own definitions use the
        # strings 'true' and 'false', too.
        return {'type': 'string', 'enum': ['true', 'false']}
    schema: dict[str, ty.Any] = {'type': {
        int: 'integer', float: 'number', str: 'string'}[kind]}
    if 'enum' in value:
        schema['enum'] = list(value['enum'])
    if 'pattern' in value:
        schema['pattern'] = f'^(?:{value["pattern"]})$'
    if 'min' in value:
        schema['minimum'] = value['min']
    if 'max' in value:
        schema['maximum'] = value['max']
    return schema


def _strip_markup(text: str) -> str:
    return ' '.join(text.replace('``', '').split())


def _title(name: str) -> str:
    """Return a title for Horizon, such as "PCI NUMA affinity"."""
    words = [_WORDS.get(word, word) for word in name.split('_')]
    if words[0].islower():
        words[0] = words[0].capitalize()
    return ' '.join(words)


if __name__ == '__main__':
    for namespace in namespaces():
        (FOLDER / namespace.file).write_text(namespace.text())
