# SPDX-License-Identifier: Apache-2.0
"""What the audit finds in clouds on which servers came, moved and went.

Servers are booted, moved, resized, deleted and evacuated at random by Nova's
own scheduler and claims.  Nothing may be found but what is there by design;
then a fault is planted, and that must be found and nothing else.  The number
of clouds is a hundredth of ``NFV_SCHED_EQUIVALENCE_CASES``.
"""

import collections
import functools

import hypothesis
from hypothesis import strategies as st

from nfv_sched.ops.answers.audit import all_checks
from nfv_sched.ops.answers.audit import values
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests.unit.ops.answers.audit import clouds
from nfv_sched.tests.unit.ops.answers.audit import faults

CLOUDS = max(4, test_stock.CASES // 100)
STEPS = 40
_FLOATING = ('plain', 'nodes')


@functools.cache
def made(seed):
    """A cloud: (snapshot, simulation, what is found there)."""
    cloud, simulation = clouds.after(clouds.steps(seed, STEPS))
    return cloud, simulation, all_checks.findings(cloud)


class TestAudit(test_stock.EquivalenceTestCase):

    def setUp(self):
        super().setUp()
        self.addCleanup(made.cache_clear)

    def check_left_behind(self, simulation, found):
        """It is where servers have left while the host was down."""
        residues = {
            name: [each for each in left if each[1].topology is not None]
            for name, left in simulation.state.residues.items() if left}
        hosts = {each.host for each in found
                 if each.kind == values.LEFT_BEHIND}
        self.assertLessEqual(hosts, residues.keys())
        self.assertLessEqual(
            {name for name, left in residues.items() if left}, hosts)

    def test_nothing_false(self):
        seen = collections.Counter()
        for seed in range(CLOUDS):
            cloud, simulation, found = made(seed)
            self.check_left_behind(simulation, found)
            attached = {step['attach'] for step in clouds.steps(seed, STEPS)
                        if 'attach' in step}
            flavors = {server.uuid: server.flavor.name
                       for server in cloud.servers}
            for each in found:
                where = f'seed {seed}: {each}'
                seen[each.kind] += 1
                if each.kind == values.FLOATING:
                    self.assertIn('old', each.host, where)
                    self.assertIn(flavors[each.server_id], _FLOATING, where)
                elif each.kind == values.REMOTE_NETWORK:
                    self.assertIn(each.server, attached, where)
                elif each.kind == values.REMOTE_DEVICE:
                    self.assertEqual(
                        'vf_prefer', flavors[each.server_id], where)
                else:
                    self.assertEqual(values.LEFT_BEHIND, each.kind, where)
            seen['servers'] += len(cloud.servers)
        print('audit, clouds: %s' % dict(seen))
        self.assertGreater(seen['servers'], 10 * CLOUDS)

    def test_planted(self):
        """A fault is found, whatever the cloud, and nothing else is."""
        seen = collections.Counter()

        @hypothesis.settings(
            test_stock.SETTINGS, max_examples=max(40, test_stock.CASES // 5))
        @hypothesis.given(
            seed=st.integers(0, CLOUDS - 1), data=st.data(),
            name=st.sampled_from(sorted(faults.FAULTS)))
        def check(seed, name, data):
            cloud, _simulation, before = made(seed)
            fault = faults.FAULTS[name]
            spots = list(fault.spots(cloud))
            hypothesis.assume(spots)
            spot = data.draw(st.sampled_from(spots))
            found = set(all_checks.findings(fault.plant(spot))) - set(before)
            where = f'seed {seed}, {name}, {spot.host.name}: {found}'
            self.assertIn(fault.kind, {each.kind for each in found}, where)
            # What was found before may read otherwise now.
            known = {(each.kind, each.host, each.server_id) for each in before}
            self.assertEqual(set(), {
                each.kind for each in found
                if (each.kind, each.host, each.server_id) not in known} - {
                    fault.kind, *fault.allowed}, where)
            if fault.of_server:
                self.assertIn(spot.server.uuid,
                              {each.server_id for each in found}, where)
            seen[name] += 1

        check()
        print('audit, faults: %s' % dict(seen))
