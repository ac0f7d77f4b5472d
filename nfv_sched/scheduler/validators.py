# SPDX-License-Identifier: Apache-2.0
"""Define the flavor extra specs of nfv-sched for validation by the Nova API.

``nova-api`` loads this module through the entry-point group
``nova.api.extra_spec_validators``.  Nova hands over one key at a time, so
contradictions between keys are found at scheduling, by
:mod:`nfv_sched.base.extra_specs` and by ``from_request`` of the rules.
"""

from nfv_sched.base import extra_specs
from nfv_sched.fit.rules import place
from nfv_sched.nova import scheduler

ExtraSpecValidator = scheduler.extra_spec_validator_class()

#: Values that are numbers, of a vCPU or of a NUMA node.
NUMBER = r'[0-9]{1,4}'

#: Guest NUMA node, as an example of the end of a key -> its name in titles.
#: Catalogues that have no patterns for names list a key with each example of
#: its parameter; Nova itself ignores ``examples``.
GUEST_NODES = {str(node): f'guest node {node}' for node in range(4)}

_DESCRIPTIONS = {
    extra_specs.VSWITCH_NUMA_AFFINITY: (
        'Where the server runs relative to the virtual switch of the host. '
        '``strict``: every NUMA node of the server is on a host NUMA node on '
        'which the switch runs, or the server is not scheduled. ``prefer``: '
        'so if any host of the cloud has capacity for it.'),
    extra_specs.PCI_NUMA_AFFINITY: (
        'Where the server runs relative to its PCI devices. ``strict``: every '
        'PCI device of the server is on a host NUMA node that the server '
        'occupies, or the server is not scheduled. ``prefer``: so if any host '
        'of the cloud can provide it.'),
    extra_specs.SHARED_VCPU: (
        'Index of the one vCPU of a server with dedicated CPUs that runs on '
        'the shared CPUs of the host.'),
    extra_specs.NUMA_NODE: (
        'The host NUMA node on which the given guest NUMA node runs.'),
    place.AFFINITY: (
        'Where the server runs relative to a place that hosts declare by the '
        'label ``nfv_{place}``. ``strict``: every NUMA node of the server is '
        'on a host NUMA node with the place, or the server is not scheduled. '
        '``prefer``: so if any host of the cloud has capacity for it.'),
    place.ANTI_AFFINITY: (
        'That the server runs away from a place that hosts declare by the '
        'label ``nfv_{place}``. ``strict``: no NUMA node of the server is on '
        'a host NUMA node with the place, or the server is not scheduled. '
        '``prefer``: so if any host of the cloud has capacity for it.'),
}


def register() -> list[ExtraSpecValidator]:
    """Return the validators, one for each key and synonym."""
    affinity = {'type': str, 'enum': list(extra_specs.AFFINITIES)}
    number = {'type': str, 'pattern': NUMBER}
    guest_node = {'name': 'id', 'pattern': NUMBER, 'examples': GUEST_NODES,
                  'description': 'The guest NUMA node.'}
    where = {'name': 'place', 'pattern': place.NAME.pattern,
             'examples': {place.VSWITCH: place.VSWITCH},
             'description': 'The place.'}
    validators = []
    for key, value, parameter in (
            (extra_specs.VSWITCH_NUMA_AFFINITY, affinity, None),
            (extra_specs.PCI_NUMA_AFFINITY, affinity, None),
            (extra_specs.SHARED_VCPU, number, None),
            (extra_specs.NUMA_NODE, {
                **number, 'description': 'The host NUMA node.'}, guest_node),
            (place.AFFINITY, affinity, where),
            (place.ANTI_AFFINITY, affinity, where)):
        end, description = '', _DESCRIPTIONS[key]
        if parameter is not None:
            end = f'{{{parameter["name"]}}}'
        validators.append(ExtraSpecValidator(
            name=key + end, description=description, value=value,
            parameters=[parameter] if parameter else []))
        if key in extra_specs.SYNONYMS:
            validators.append(ExtraSpecValidator(
                name=extra_specs.SYNONYMS[key] + end,
                description=f'{description} Synonym of ``{key}{end}``.',
                value=value, parameters=[parameter] if parameter else []))
    return validators
