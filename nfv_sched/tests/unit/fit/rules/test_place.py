# SPDX-License-Identifier: Apache-2.0
"""Guests at, and away from, the places that hosts declare.

What is accepted is claimed by Nova's own code, with the limits that the
filters leave.
"""

import itertools

from nova import exception
from nova import objects
from nova.virt import hardware

from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit import rules
from nfv_sched.fit.rules import place
from nfv_sched.scheduler import notes
from nfv_sched.tests import base as tests_base
from nfv_sched.tests import outcomes
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.weights import place_numa_affinity as place_weigher

AT = outcomes.AT
AWAY = outcomes.AWAY_FROM


class TestLabels(tests_base.TestCase):
    NAMES = numa_rule.Names('nfv_vswitch', 'nfv_node')

    def test_places(self):
        for name in ('osd', 'nodes', 'node', 'node0x', 'node-1', 'node00',
                     'nfv_node0', 'Node0', 'a' * 64, 'vswitch'):
            label = place.label_of(name, self.NAMES)
            self.assertEqual(f'nfv_{name}', label)
            self.assertEqual(name, place.place_of(label, self.NAMES))

    def test_labels_of_no_place(self):
        for label in ('nfv_node0', 'nfv_node17', 'physnet0', 'nfv_', 'nfv',
                      'nfv_a b', 'nfv_a.b', 'NFV_osd', 'osd', 'nfv_' * 18):
            self.assertIsNone(place.place_of(label, self.NAMES), label)

    def test_other_names(self):
        names = numa_rule.Names('switch', 'numa')
        for label, name in (
                ('switch', 'vswitch'), ('nfv_vswitch', None),
                ('nfv_node0', 'node0'), ('numa0', None),
                ('nfv_numa0', 'numa0'), ('nfv_switch', 'switch')):
            self.assertEqual(name, place.place_of(label, names), label)
        self.assertEqual('switch', place.label_of('vswitch', names))
        # Whose labels are alike, those of nodes and of the switch count.
        names = numa_rule.Names('nfv_osd', 'nfv_')
        for label, name in (('nfv_osd', 'vswitch'), ('nfv_0', None),
                            ('nfv_x0', 'x0')):
            self.assertEqual(name, place.place_of(label, names), label)


class TestKeys(base.PlaceTestCase):
    def request(self, extra_specs):
        spec = self.spec(extra_specs)
        return notes.note_of(spec).read(spec)

    def rules(self, extra_specs):
        request = self.request(extra_specs)
        self.assertIsNone(request.error)
        return [(rule.text, rule.place, rule.away, rule.strict)
                for rule in request.rules
                if isinstance(rule, place.PlaceRule)]

    def error(self, extra_specs):
        request = self.request(extra_specs)
        self.assertEqual('flavor', request.error.policy)
        self.assertEqual((), request.rules)
        host = self.host(osd=(0,))
        for each in (self.filters, self.filters[:1], self.filters[3:4]):
            self.assertIn(request.error.need[:60], self.refusal(
                [host], self.spec(extra_specs), each))
        return request.error.need

    def test_one_rule_for_each_key(self):
        self.assertEqual([], self.rules({}))
        self.assertEqual([
            (f'{AT}nvme=strict', 'nvme', False, True),
            (f'{AT}vswitch=prefer', 'vswitch', False, False),
            (f'{AWAY}OSD_1-a=prefer', 'OSD_1-a', True, False),
            (f'{AWAY}osd=strict', 'osd', True, True),
        ], self.rules({
            f'{AWAY}osd': 'strict', f'{AT}nvme': 'strict',
            f'{AWAY}OSD_1-a': 'prefer', f'{AT}vswitch': 'prefer'}))

    def test_bad_names(self):
        for prefix, name in itertools.product(
                (AT, AWAY), ('', 'a.b', 'a b', 'osd\n', '\u00e9', 'x' * 65,
                             'x' * 100000, '\x00', '{place}', '%s')):
            need = self.error({f'{prefix}{name}': 'strict'})
            self.assertIn('does not name a place', need)
            self.assertLess(len(need), 80)

    def test_bad_values(self):
        for value in ('', 'Strict', 'strict ', 'required', '1',
                      'x' * 100000):
            need = self.error({f'{AT}osd': value})
            self.assertIn('is not one of strict, prefer', need)
            self.assertIn(f'{AT}osd=', need)
            self.assertLess(len(need), 120)

    def test_contradictions(self):
        for one, other in itertools.product(('strict', 'prefer'), repeat=2):
            self.assertEqual(
                f'{AWAY}osd={other} contradicts {AT}osd={one}',
                self.error({f'{AT}osd': one, f'{AWAY}osd': other}))

    def test_all_faults_are_named(self):
        specs = {f'{AT}osd': 'Strict', f'{AT}a.b': 'strict',
                 f'{AT}nvme': 'strict', f'{AWAY}nvme': 'prefer'}
        expected = [
            f"'{AT}a.b' does not name a place",
            f"{AT}osd='Strict' is not one of strict, prefer",
            f'{AWAY}nvme=prefer contradicts {AT}nvme=strict']
        self.assertEqual('; '.join(expected), self.error(specs))
        # As those read who look at flavors.
        self.assertEqual(
            ['nfv:nonsense', f'{AT}a.b', f'{AT}osd', f'{AWAY}nvme'],
            [fault.key for fault in rules.faults(
                {**specs, 'nfv:nonsense': '1'})])
        self.assertEqual([], rules.faults({f'{AT}osd': 'strict'}))

    def test_many_keys(self):
        """More than anybody needs; each of them counts."""
        for value in ('strict', 'prefer'):
            specs = {f'{AWAY}p{number}': value for number in range(128)}
            self.assertEqual(128, len(self.rules(specs)))
            host = self.host(p127=(0,), p0=(0,))
            self.assertEqual([1], self.placed(host, self.spec(specs)))
        full = self.host(p127=(0,), p0=(1,))
        text = self.refusal([full], self.spec(
            {f'{AWAY}p{number}': 'strict' for number in range(128)}))
        self.assertLessEqual(len(text.encode()), 255)


class TestHosts(base.PlaceTestCase):
    """Alone, on hosts of all sizes."""

    def test_the_place_of_the_switch(self):
        """It has a label of its own, which an option names."""
        self.flags(vswitch_label='ovs')
        for key, node in ((f'{AT}vswitch', 1), (f'{AWAY}vswitch', 0)):
            host = clouds.host(switch=None, physnets={
                'ovs': (1,), 'nfv_vswitch': (0,)}, free={node: 2})
            self.assertEqual(
                [node], self.placed(host, self.spec({key: 'strict'})))
        self.assertIsNone(self.placed(
            clouds.host(switch=(1,)), self.spec({f'{AT}vswitch': 'strict'})))

    def test_names_are_case_sensitive(self):
        self.assertIsNone(self.placed(
            self.host(osd=(0,)), self.spec({f'{AT}OSD': 'strict'})))


class TestWithoutNUMATopology(base.PlaceTestCase):
    """Guests whose CPUs float over the whole host."""

    def outcome(self, key, host):
        self.flags(expose_reasons='summary')
        try:
            self.passing([host], self.spec({f'{key}osd': 'strict'},
                                           numa=False))
        except exception.NoValidHost as error:
            return str(error)
        return None

    def test_strict(self):
        declare = 'a host that declares the place osd needed'
        topology = 'a guest NUMA topology needed, set hw:numa_nodes'
        for nodes, osd, at, away in (
                (1, (0,), None, '1 host NUMA node without osd needed, '
                                'has 0'),
                (1, None, declare, None),
                (2, (0,), topology, topology),
                (2, (0, 1), topology, topology),
                (2, None, topology, None),
                (0, None, topology, None)):
            for key, expected in ((AT, at), (AWAY, away)):
                host = self.host(nodes=max(nodes, 1), **(
                    {'osd': osd} if osd else {}))
                if not nodes:
                    host.numa_topology = None
                found = self.outcome(key, host)
                if expected is None:
                    self.assertIsNone(found)
                else:
                    self.assertIn(f'{key}osd=strict: {expected}', found)

    def test_prefer(self):
        weigher = place_weigher.PlaceNUMAAffinityWeigher()
        for nodes, osd, at, away in (
                (1, (0,), 1.0, 0.0), (1, None, 0.0, 1.0),
                (2, (0,), 0.0, 0.0), (2, None, 0.0, 1.0)):
            for key, expected in ((AT, at), (AWAY, away)):
                host = self.host(nodes=nodes, **(
                    {'osd': osd} if osd else {}))
                spec = self.spec({f'{key}osd': 'prefer'}, numa=False)
                self.assertEqual(['host1'], self.passing([host], spec))
                self.assertEqual(
                    [expected], clouds.weigh(weigher, spec, host))


class TestTogether(base.PlaceTestCase):
    """With other policies, in agreement and in conflict, in any order."""

    def test_switch_holds_it_by_chance(self):
        """Nodes without labels: that of the switch does as well."""
        host = self.host(osd=(0,), switch=(1,), node_labels=False)
        self.assertEqual([1], self.placed(
            host, self.spec({f'{AWAY}osd': 'strict'})))
        self.assertEqual({'nfv_vswitch'}, self.labels(host))


class TestNarrowedPages(base.PlaceTestCase):
    """Nova narrows a page request for the first server of several.

    The claim of the next reads it as it was.
    """

    @staticmethod
    def pages_host(name, sizes, **kwargs):
        state = clouds.host(name, cpus=8, switch=None,
                            physnets={'nfv_osd': (0,)}, **kwargs)
        for cell, size in zip(state.numa_topology.cells, sizes):
            cell.mempages = [
                objects.NUMAPagesTopology(
                    size_kb=4, total=8192 * 64, used=0, reserved=0),
                objects.NUMAPagesTopology(
                    size_kb=size, total=4 * 1048576 // size, used=0,
                    reserved=0)]
        return state

    def test_no_claim_ends_at_the_place(self):
        spec = clouds.spec(extra_specs={f'{AWAY}osd': 'strict'}, memory=1024)
        spec.num_instances = 2
        spec.numa_topology.cells[0].pagesize = -2
        asked = spec.numa_topology.obj_clone()
        first = self.pages_host('first', (2048, 2048))
        self.assertEqual(['first'], self.passing([first], spec))
        first.consume_from_request(spec)
        self.assertEqual(2048, spec.numa_topology.cells[0].pagesize)
        # The node with the place is the emptier one.
        second = self.pages_host('second', (1048576, 2048), free={1: 6})
        if self.passing([second], spec):
            claimed = hardware.numa_fit_instance_to_host(
                second.numa_topology, asked, provider_mapping={},
                limits=second.limits['numa_topology'])
            self.assertTrue(claimed is None or claimed.cells[0].id == 1)
