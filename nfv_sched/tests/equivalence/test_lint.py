# SPDX-License-Identifier: Apache-2.0
"""What is said to be wrong with generated flavors, against Nova itself.

An error means that the API, or Nova's check of flavor and image, or each host
of a catalogue refuses the flavor; and a flavor without one is placed on some
empty host of the catalogue, by Nova's own scheduler and claim.  The number of
flavors comes from the environment, ``NFV_SCHED_EQUIVALENCE_CASES``.
"""

import dataclasses

import hypothesis
from hypothesis import strategies as st
from nova.api.validation.extra_specs import validators
from nova.compute import api as compute_api
from nova import exception

from nfv_sched.ops.answers.explain import scheduling
from nfv_sched.ops.answers.flavors.lint import all_rules
from nfv_sched.ops.answers.flavors.lint import values
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import start
from nfv_sched.ops.simulator import state as states
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests.unit.ops import small_clouds

#: Flavors of an example; a cloud is set up for each.
TOGETHER = 20

GIB = 1024


def node(number, cpus=12, shared=2, threads=2, legacy=False, places=(),
         switch=False):
    first = number * cpus
    own = range(first, first + cpus)
    physnets = {f'nfv_node{number}', *(f'nfv_{place}' for place in places)}
    if switch:
        physnets.add('nfv_vswitch')
    return snapshot.Node(
        number=number, socket=number, memory=24 * GIB,
        shared=frozenset(own if legacy else own[:shared]),
        dedicated=frozenset(own if legacy else own[shared:]),
        siblings=tuple(frozenset(own[at:at + threads])
                       for at in range(0, cpus, threads)),
        physnets=frozenset(physnets), pages=(
            snapshot.Pages(size=4, total=8 * GIB * 256),
            snapshot.Pages(size=2048, total=8 * GIB // 2),
            snapshot.Pages(size=1048576, total=8)))


def host(name, *nodes, devices=(), traits=()):
    made = small_clouds.host(name, *nodes, devices=devices, traits=traits)
    root = made.providers[0]
    shared = sum(len(each.shared) for each in nodes)
    # Where the same CPUs serve both, nova-compute reports VCPU only.
    both = any(each.shared & each.dedicated for each in nodes)
    inventories = {
        **({} if both else {'PCPU': root.inventories['PCPU']}),
        'VCPU': snapshot.Inventory(total=shared, max_unit=shared, ratio=4.0),
        'MEMORY_MB': root.inventories['MEMORY_MB']}
    return dataclasses.replace(made, providers=(dataclasses.replace(
        root, inventories=inventories),))


CATALOGUE = small_clouds.cloud(
    host('threads', node(0, switch=True), node(1, places=('osd',)),
         devices=(small_clouds.device(1, 0), small_clouds.device(2, 1),
                  small_clouds.device(3, 1)), traits=('CUSTOM_X',)),
    host('one', node(0, 16, 4, 1, switch=True, places=('osd',))),
    host('small', *(node(number, 6, 1, 1, switch=number < 2)
                    for number in range(4)), traits=(
                        'HW_CPU_X86_AVX2',)),
    host('legacy', node(0, legacy=True), node(1, legacy=True, switch=True)),
    filters=small_clouds.FILTERS)

NAMES = tuple([host.name for host in CATALOGUE.hosts])

#: Values of keys, good ones and others.
SPECS = {
    'hw:cpu_policy': ('dedicated', 'dedicated', 'dedicated', 'mixed',
                      'shared', 'dedicatd'),
    'hw:cpu_dedicated_mask': ('^0', '0', '1-2', '^0-1', '0-99', 'x'),
    'hw:cpu_thread_policy': ('prefer', 'isolate', 'require', 'always'),
    'hw:emulator_threads_policy': ('share', 'isolate', 'x'),
    'hw:numa_nodes': ('1', '2', '2', '3', '4', '0', 'x'),
    'hw:numa_cpus.0': ('0', '0-1', '0-3', '1-3', '0,9'),
    'hw:numa_cpus.1': ('2-3', '0', '1-3', '4'),
    'hw:numa_mem.0': ('1024', '2048', 'x'),
    'hw:numa_mem.1': ('1024', '2048'),
    'hw:mem_page_size': ('small', 'large', 'any', '2MB', '2048', '1GB',
                         '4', '64', 'huge'),
    'hw:cpu_realtime': ('true', 'no'),
    'hw:cpu_realtime_mask': ('^0', '1-3', '0-99'),
    'hw:pci_numa_affinity_policy': ('required', 'preferred', 'legacy', 'x'),
    'pci_passthrough:alias': ('nic:1', 'nic:2', 'nic:4', 'other:1'),
    'nfv:vswitch_numa_affinity': ('strict', 'strict', 'prefer', 'stritc'),
    'hw:wrs:vswitch_numa_affinity': ('strict', 'prefer'),
    'nfv:pci_numa_affinity': ('strict', 'prefer', 'x'),
    'nfv:shared_vcpu': ('0', '0', '1', '9', 'x'),
    'nfv:numa_node.0': ('0', '1', '3', '7', 'x'),
    'hw:numa_node.1': ('0', '1'),
    'nfv:numa_affinity.osd': ('strict', 'prefer'),
    'nfv:numa_anti_affinity.osd': ('strict', 'prefer'),
    'nfv:numa_affinity.elsewhere': ('strict', 'prefer'),
    'trait:CUSTOM_X': ('required', 'forbidden', 'x'),
    'trait:HW_CPU_X86_AVX2': ('required',),
    'resources:VCPU': ('2', '0'),
    'hw:tpm_version': ('9',),
    'hw:cpu_polcy': ('dedicated',),
    'nfv:vswitch_affinity': ('strict',),
    'sw:wrs:vtpm': ('true',),
    'mine:x': ('1',),
}


@st.composite
def flavors(draw):
    keys = draw(st.lists(st.sampled_from(sorted(SPECS)), max_size=4,
                         unique=True))
    if draw(st.integers(0, 2)):
        keys.append('hw:cpu_policy')
    specs = {key: draw(st.sampled_from(SPECS[key])) for key in keys}
    if specs.get('hw:cpu_policy') == 'mixed' and draw(st.integers(0, 3)):
        specs['hw:cpu_dedicated_mask'] = '^0'
    return snapshot.Flavor(
        name='f', vcpus=draw(st.sampled_from((4, 4, 2, 1, 3, 6, 8, 12, 40))),
        memory=draw(st.sampled_from((2048, 4096, 3072, 3001, 1, 30 * GIB))),
        extra_specs=specs)


def refused_by_api(key, value):
    try:
        validators.validate(key, value)
    except exception.ValidationError:
        return True
    return False


def refused_with_image(flavor):
    image = {'status': 'active', 'name': 'i', 'properties': {}}
    try:
        compute_api.API._validate_flavor_image_nostatus(
            nova_internals.admin_context(), image, flavor, None)
    except (exception.NovaException, ValueError):
        return True
    return False


class TestLint(test_stock.EquivalenceTestCase):

    def assert_true(self, flavor, each, nova_flavor, placed):
        """Assert that an error is one."""
        what = f'{flavor}: {each}'
        if each.rule in ('value-refused', 'key-refused'):
            self.assertTrue(refused_by_api(
                each.key, flavor.extra_specs[each.key]), what)
        elif each.rule == 'refused-by-nova':
            self.assertTrue(
                refused_with_image(nova_flavor) or not placed, what)
        else:
            self.assertFalse(placed, what)

    def test_errors(self):
        seen = dict.fromkeys(('flavors', 'errors', 'placed', 'hosts'), 0)

        def check_one(flavor, alone, on_hosts, state):
            nova_flavor = states.nova_flavor(flavor)
            placed = not scheduling.run(
                state, request.BootRequest(flavor=flavor)).reason
            seen['flavors'] += 1
            seen['placed'] += placed
            for found in (alone, on_hosts):
                for each in found:
                    self.assert_true(flavor, each, nova_flavor, placed)
            seen['errors'] += bool(alone)
            if not on_hosts:
                self.assertTrue(placed, flavor)
            seen['hosts'] += bool(on_hosts) and not alone

        @hypothesis.settings(
            test_stock.SETTINGS,
            max_examples=max(1, test_stock.CASES // TOGETHER))
        @hypothesis.given(
            st.lists(flavors(), min_size=TOGETHER, max_size=TOGETHER),
            st.sets(st.sampled_from(NAMES), min_size=1) | st.just(set(NAMES)))
        def check(made, hosts):
            cloud = dataclasses.replace(CATALOGUE, hosts=tuple([
                host for host in CATALOGUE.hosts if host.name in hosts]))
            made = [dataclasses.replace(flavor, name=f'f{number}')
                    for number, flavor in enumerate(made)]
            alone, on_hosts = (
                {flavor.name: [
                    each for each in found if each.flavor == flavor.name and
                    each.severity == values.ERROR] for flavor in made}
                for found in (all_rules.lint(made), all_rules.lint(
                    made, cloud=cloud, on_hosts=True)))
            with start.started(cloud) as state:
                for flavor in made:
                    check_one(flavor, alone[flavor.name],
                              on_hosts[flavor.name], state)

        check()
        print('lint: %s' % seen)
        self.assert_seen(seen['placed'], test_stock.CASES // 10)
        self.assert_seen(seen['errors'], test_stock.CASES // 5)
        self.assert_seen(seen['hosts'], 0)
