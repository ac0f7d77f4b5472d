# SPDX-License-Identifier: Apache-2.0
"""Filters and weighers in shadow, as Nova's handlers call them.

On Nova's own HostStates, limits and weights.
"""

import copy
import random

import fixtures
from nova import objects
from nova.scheduler import weights as nova_weights

from nfv_sched.limits import names as ledger_names
from nfv_sched.ops.answers.journal import reading
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import process
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.tests.unit.filters import network
from nfv_sched.tests.unit.limits import snapshots
from nfv_sched.weights import pci_numa_affinity
from nfv_sched.weights import vswitch_numa_affinity

TOPOLOGY = 'NFVTopologyFilter'
VSWITCH = 'VSwitchNUMAAffinityFilter'
PCI = 'PCINUMAAffinityFilter'
SHARED = 'SharedVCPUFilter'
THREADS = 'CPUThreadPolicyFilter'
WEIGHER = 'VSwitchNUMAAffinityWeigher'
PORTS = 'VSwitchPortLimitFilter'
RULES = 'SecurityRuleLimitFilter'


def rejected(spec):
    """Host -> the filter in shadow that would have refused it."""
    note = notes.note_of(spec).shadow
    return {host: name for host, (name, _reason) in note.rejected.items()}


def counted(name='all'):
    """Servers, those that would be refused and those that would be moved."""
    count, changed = process.STATE.in_shadow().get(name, (0, {}))
    return count, changed.get('refused', 0), changed.get('elsewhere', 0)


class ShadowTestCase(base.EnforcementTestCase):
    def enable(self, *names, shadow=()):
        self.flags('filter_scheduler', enabled_filters=list(names))
        self.flags(shadow=list(shadow))
        ours = {type(each).__name__: each for each in self.filters}
        return [ours[name] for name in names]

    def place(self, host, spec):
        host.stats = {'num_instances': 0}
        host.consume_from_request(spec)


class TestShadowedFilter(ShadowTestCase):

    def test_passes_what_it_would_refuse(self):
        enabled = self.enable(TOPOLOGY, VSWITCH, shadow=[VSWITCH])
        spec, host = clouds.spec('strict'), clouds.host(free={1: 0})
        self.assertEqual(['host1'], self.passing([host], spec, enabled))
        self.assertEqual(set(), self.labels(host))
        self.assertEqual({'host1': VSWITCH}, rejected(spec))
        self.place(host, spec)
        self.assertEqual((1, 1, 0), counted())
        self.assertEqual((1, 1, 0), counted(VSWITCH))
        self.assertIn('In shadow: VSwitchNUMAAffinityFilter would have '
                      'refused the last host for server', self.log.output)
        self.assertIn('nfv:vswitch_numa_affinity=strict: 2 dedicated CPUs on '
                      'one NUMA node with the virtual switch needed, 0 free '
                      '(1 host)', self.log.output)

    def test_journal(self):
        """With the reasons of the hosts that it would have refused."""
        directory = self.useFixture(fixtures.TempDir()).path
        self.flags(decision_journal=directory)
        enabled = self.enable(TOPOLOGY, VSWITCH, shadow=[VSWITCH])
        for free, other in (({}, None), ({1: 0}, None), ({1: 0}, 'other')):
            hosts = [clouds.host(free=free)]
            hosts += [clouds.host(other)] if other else []
            spec = clouds.spec('strict')
            self.passing(hosts, spec, enabled)
            self.place(hosts[0], spec)
        content = reading.read(directory)
        self.assertEqual((), content.refusals)
        self.assertEqual(
            [('', (), ''), ('refused', (VSWITCH,), ''),
             ('elsewhere', (VSWITCH,), 'other')],
            [(each.change, each.by, each.instead) for each in content.placed])
        same, refused, elsewhere = content.placed
        self.assertEqual((), same.reasons)
        for each in (refused, elsewhere):
            self.assertEqual(('host1', (VSWITCH,)), (each.host, each.shadow))
            reason, = each.reasons
            self.assertEqual(
                ('nfv:vswitch_numa_affinity=strict', ('host1',)),
                (reason.policy, reason.hosts))

    def test_placed(self):
        """Accepted decisions are in the journal if it is asked for them."""
        directory = self.useFixture(fixtures.TempDir()).path
        self.flags(decision_journal=directory)
        enabled = self.enable(TOPOLOGY, VSWITCH)
        for wanted in (False, True):
            self.flags(decision_journal_placed=wanted)
            hosts = [clouds.host('full', free={1: 0}), clouds.host('empty')]
            spec = clouds.spec('strict')
            self.passing(hosts, spec, enabled)
            self.place(hosts[1], spec)
        placed, = reading.read(directory).placed
        self.assertEqual(('empty', (), '', ()), (
            placed.host, placed.shadow, placed.change, placed.reasons))
        self.assertEqual(
            [(TOPOLOGY, 2, 2), (VSWITCH, 2, 1)],
            [(each.filter, each.hosts, each.left) for each in placed.passes])

    def test_counts_once(self):
        """Nova filters again for alternates."""
        enabled = self.enable(TOPOLOGY, VSWITCH, shadow=[VSWITCH])
        spec, host = clouds.spec('strict'), clouds.host()
        for _ in range(2):
            self.passing([host], spec, enabled)
            self.place(host, spec)
        self.assertEqual((1, 0, 0), counted())

    def test_no_policy(self):
        enabled = self.enable(TOPOLOGY, VSWITCH, shadow=[VSWITCH])
        spec, host = clouds.spec(), clouds.host()
        self.assertEqual(['host1'], self.passing([host], spec, enabled))
        self.place(host, spec)
        self.assertEqual({}, process.STATE.in_shadow())

    def test_request_that_is_wrong(self):
        enabled = self.enable(VSWITCH, shadow=[VSWITCH])
        spec, host = clouds.spec('nonsense'), clouds.host()
        self.assertEqual(['host1'], self.passing([host], spec, enabled))
        self.place(host, spec)
        self.assertEqual((1, 1, 0), counted(VSWITCH))

    def test_request_that_cannot_be_read(self):
        enabled = self.enable(VSWITCH, shadow=[VSWITCH])
        spec = clouds.spec('strict')
        # Not a list of PCI requests.
        setattr(spec.pci_requests, '_obj_requests', 5)
        self.assertEqual(['host1'], self.passing(
            [clouds.host()], spec, enabled))
        self.assertIn('cannot be read', self.log.output)
        enabled = self.enable(VSWITCH)
        notes.note_of(spec).shadowed = None  # of the next server
        self.assertEqual([], self.passing([clouds.host()], spec, enabled))

    def test_host_that_cannot_be_copied(self):
        enabled = self.enable(VSWITCH, shadow=[VSWITCH])
        host, spec = clouds.host(), clouds.spec('strict')
        host.allocation_candidates = ['nonsense']
        self.assertEqual(['host1'], self.passing([host], spec, enabled))
        self.assertIn('in shadow would have done', self.log.output)

    def test_unknown_name(self):
        """It is logged when filters are made, and has no effect."""
        self.enable(VSWITCH, shadow=['VSwitchFilter'])
        type(self.filters[1])()
        self.assertIn('[nfv_sched] shadow: VSwitchFilter is not a filter or '
                      'weigher of nfv-sched', self.log.output)


class TestShadowBesideOthers(ShadowTestCase):
    """What a filter in shadow leaves to those that count."""

    ALL = (TOPOLOGY, VSWITCH, PCI, SHARED, THREADS)

    def cases(self):
        both = {'nfv:vswitch_numa_affinity': 'strict',
                'nfv:pci_numa_affinity': 'strict'}
        for keys in (both, {**both, 'nfv:pci_numa_affinity': 'prefer'},
                     {**both, 'nfv:vswitch_numa_affinity': 'prefer'},
                     base.PCI_STRICT, {'nfv:numa_node.0': '0'},
                     {**both, 'nfv:numa_node.0': '1'}):
            for devices in ({0: 1}, {1: 1}, {0: 1, 1: 1}):
                for free in ({}, {0: 0}, {1: 0}, {0: 1, 1: 1}):
                    yield keys, devices, free

    def result(self, enabled, keys, devices, free):
        """What reaches Nova, and what would have been refused."""
        spec = clouds.spec(extra_specs=keys, devices=[
            clouds.pci_request(policy='preferred')])
        host = base.provide(clouds.host(devices=devices, free=free), spec,
                            sorted(devices, reverse=True))
        passed = bool(self.passing([host], spec, enabled))
        note = notes.note_of(spec).shadow
        would_pass = passed and not (note and note.rejected)
        if not passed:
            return (False, None, None), False
        providers = [providers for candidate in host.allocation_candidates
                     for name, providers in candidate['mappings'].items()
                     if name]
        return (True, providers, self.labels(host)), would_pass

    def test_as_if_not_enabled(self):
        """With one of them in shadow, or several, in each order."""
        self.flags(expose_reasons='none')
        for shadowed in ([VSWITCH], [PCI], [VSWITCH, PCI], [TOPOLOGY],
                         [TOPOLOGY, VSWITCH]):
            for order in (self.ALL, self.ALL[::-1]):
                counting = [name for name in order if name not in shadowed]
                for case in self.cases():
                    without, _ = self.result(self.enable(*counting), *case)
                    everything, _ = self.result(self.enable(*order), *case)
                    result, would_pass = self.result(
                        self.enable(*order, shadow=shadowed), *case)
                    self.assertEqual(without, result, (shadowed, case))
                    self.assertEqual(everything[0], would_pass,
                                     (shadowed, order, case))

    def servers(self, enabled, shapes, keys, cells, devices):
        """Place two servers of one request, each on the first host.

        :returns: what reaches Nova for each, and the hosts that would be left
            for the first
        """
        spec = clouds.spec(extra_specs=keys, cells=cells, devices=[
            clouds.pci_request(policy='preferred')] if devices else [])
        hosts = [clouds.host(f'host{number}', **shape)
                 for number, shape in enumerate(shapes)]
        seen, would_pass = [], None
        for index in range(2):
            spec.instance_uuid = network.UUIDS[index]
            hosts = self.handler.get_filtered_objects(
                enabled, hosts, spec, index)
            if index == 0:
                note = notes.note_of(spec).shadow
                would_pass = [host.host for host in hosts or ()
                              if not note or host.host not in note.rejected]
            if not hosts:
                break
            limits = objects.Selection.from_host_state(
                hosts[0]).limits.numa_topology
            seen.append((
                [host.host for host in hosts],
                None if limits is None else self.labels(hosts[0])))
            self.place(hosts[0], spec)
        return seen, would_pass

    def test_generated(self):
        """The same for requests of several servers, over generated hosts."""
        self.flags(expose_reasons='none')
        generator = random.Random(7)
        for _ in range(60):
            keys = {key: generator.choice(('strict', 'prefer')) for key in (
                'nfv:vswitch_numa_affinity', 'nfv:pci_numa_affinity')
                if generator.random() < 0.7}
            self.flags(
                strict_enforcement=generator.choice(('claim', 'predicted')))
            case = [{
                'devices': {0: generator.randint(0, 3),
                            1: generator.randint(0, 3)},
                'free': {0: generator.randint(0, 4),
                         1: generator.randint(0, 4)},
                'node_labels': generator.random() < 0.8,
                'switch': generator.choice([None, (0,), (1,), (0, 1)]),
            } for _ in range(3)], keys, generator.choice(
                (1, 1, 2)), generator.random() < 0.6
            order = generator.sample(self.ALL, len(self.ALL))
            shadowed = generator.sample(order, generator.randint(1, 3))
            without, _ = self.servers(self.enable(*[
                name for name in order if name not in shadowed]), *case)
            _, everything = self.servers(self.enable(*order), *case)
            self.assertEqual(
                (without, everything), self.servers(
                    self.enable(*order, shadow=shadowed), *case),
                (order, shadowed, case))

    def test_live_migration(self):
        """On a Nova that loses labels it says so, and lets it move."""
        self.flags(moves_without_limits='refuse')
        enabled = self.enable(TOPOLOGY, VSWITCH, shadow=[VSWITCH])
        host = clouds.host()
        spec = clouds.spec('strict', move=True, live=True)
        self.assertEqual(['host1'], self.passing([host], spec, enabled))
        self.assertEqual(set(), self.labels(host))


class TestShadowedWeigher(ShadowTestCase):

    def weighed(self, hosts, spec, *weighers):
        return nova_weights.HostWeightHandler().get_weighed_objects(
            [vswitch_numa_affinity.VSwitchNUMAAffinityWeigher(), *weighers],
            hosts, spec)

    def test_weighs_nothing(self):
        self.enable(shadow=[WEIGHER])
        far, near = clouds.host('far', free={1: 1}), clouds.host('near')
        spec = clouds.spec('prefer')
        self.assertEqual([0.0, 0.0], [
            each.weight for each in self.weighed([far, near], spec)])
        self.place(far, spec)
        self.assertEqual((1, 0, 1), counted(WEIGHER))
        self.assertIn('VSwitchNUMAAffinityWeigher would have placed server '
                      'None on near instead of far', self.log.output)

    def test_beside_another(self):
        """Nothing would have changed if that one outweighs it.

        Nor if Placement does not grant the first host.
        """
        class Other(nova_weights.BaseHostWeigher):
            def weight_multiplier(self, host_state):
                return multiplier

            def _weigh_object(self, host_state, weight_properties):
                return float(host_state.host == preferred)

        self.enable(shadow=[WEIGHER])
        for count, preferred, multiplier in (
                (1, 'far', 2000.0), (2, 'near', 1.0)):
            far, near = clouds.host('far', free={1: 1}), clouds.host('near')
            spec = clouds.spec('prefer')
            self.weighed([far, near], spec, Other())
            self.place(far, spec)
            self.assertEqual((count, 0, 0), counted(WEIGHER))

    def test_with_its_filter(self):
        """Hosts that the filter would refuse are not preferred."""
        enabled = self.enable(
            TOPOLOGY, VSWITCH, shadow=[VSWITCH, 'PCINUMAAffinityWeigher'])
        near = clouds.host('near', devices={0: 1, 1: 1}, free={1: 1})
        far = clouds.host('far', devices={0: 1}, free={0: 0})
        spec = clouds.spec(
            'strict', extra_specs=base.PCI_PREFER,
            devices=[clouds.pci_request(policy='preferred')])
        self.assertEqual(['near', 'far'],
                         self.passing([near, far], spec, enabled))
        self.assertEqual({'near': VSWITCH}, rejected(spec))
        self.weighed([near, far], spec,
                     pci_numa_affinity.PCINUMAAffinityWeigher())
        self.place(far, spec)
        self.assertEqual((1, 0, 0), counted())
        self.assertEqual((1, 0, 0), counted('PCINUMAAffinityWeigher'))


class TestShadowedLimits(network.NetworkTestCase):

    def setUp(self):
        super().setUp()
        self.enabled = [network.PORTS, network.RULES]
        self.flags('filter_scheduler', enabled_filters=[PORTS, RULES])
        self.flags(shadow=[PORTS], security_rules_per_node=100)
        self.provider = ledger_names.provider_uuid(network.UUIDS[5])

    def spec(self, *args, **kwargs):
        spec = super().spec(*args, **kwargs)
        notes.placement_answered(spec, snapshots.summaries({
            network.UUIDS[5]: {ledger_names.PORTS: 100,
                               ledger_names.RULES: 1000}}))
        return spec

    def claims(self, host):
        return [set(candidate['allocations'].get(
            self.provider, {'resources': {}})['resources'])
            for candidate in host.allocation_candidates]

    def test_no_claim(self):
        """Only of the rules, whose filter counts."""
        self.neutron(rules={'a': 5})
        host, spec = self.host(), self.spec(2, ['a'])
        self.assertEqual(['host1'], self.passing([host], spec, *self.enabled))
        self.assertEqual([{ledger_names.RULES}], self.claims(host))
        self.flags(shadow=[PORTS, RULES])
        host, spec = self.host(), self.spec(2, ['a'])
        before = copy.deepcopy(host.allocation_candidates)
        self.assertEqual(['host1'], self.passing([host], spec, *self.enabled))
        self.assertEqual(before, host.allocation_candidates)
        self.assertIs(list, type(host.allocation_candidates))
        self.assertEqual({}, rejected(spec))

    def test_last_host(self):
        """It is not named for what another filter refuses."""
        self.neutron({'number': 8, 'host': 'host1'}, rules={'a': 99})
        self.flags(shadow=[PORTS], security_rules_per_node=150)
        self.assertIn('security-group rules', self.refused(
            [self.host()], self.spec(2, ['a']), *self.enabled))
