# SPDX-License-Identifier: Apache-2.0
"""``cloud failover``, against evacuations in the simulator.

Each host of generated clouds is lost, and each two at once; their guests are
evacuated one after the other.  Those that are refused are those that the check
says are stranded, and a plan of ``host evacuate`` leaves no more behind.  The
number of clouds is a twentieth of ``NFV_SCHED_EQUIVALENCE_CASES``.
"""

import itertools

import hypothesis

from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import failover
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import start
from nfv_sched.tests.equivalence import inhabited
from nfv_sched.tests.equivalence import test_stock


def evacuated(found, lost):
    """Evacuate the guests of lost hosts; return UUID refused -> why."""
    with start.started(found) as state:
        simulation = engine.Simulation(state)
        for name in lost:
            simulation.step(actions.Step(
                action='host_down', number=1, targets=(name,)))
        # The newest first: they are in the order of their boot.
        guests = [server for server in reversed(state.servers.values())
                  if server.host is not None and server.host.name in lost]
        refused = {}
        for server in guests:
            simulation.step(actions.MoveStep(
                action='evacuate', number=2, targets=(server.name,)))
            outcome = simulation.outcomes[-1]
            if not outcome.ok:
                refused[server.uuid] = outcome.reason
        return refused


class TestFailover(test_stock.EquivalenceTestCase):

    def test_same_guests_are_stranded(self):
        seen = dict.fromkeys((
            'losses', 'guests', 'stranded', 'sure', 'better'), 0)
        tried = failover.FailoverAnalysis.tried

        def counted(self, guests, lost):
            seen['sure'] += not guests
            return tried(self, guests, lost)

        self.patch(failover.FailoverAnalysis, 'tried', counted)

        @hypothesis.settings(
            test_stock.SETTINGS, max_examples=max(6, test_stock.CASES // 20))
        @hypothesis.given(case=inhabited.clouds())
        def check(case):
            _seed, found = case
            names = [host.name for host in found.hosts]
            self._compare(found, failover.check(found, names).hosts, [
                [name] for name in names], seen)
            pairs = list(itertools.combinations(names, 2))
            if len(names) < 4:
                worst = dict.fromkeys(names, 0)
                for loss in itertools.chain(*[failover.check(
                        found, pair, together=True).hosts for pair in pairs]):
                    worst[loss.host] = max(
                        worst[loss.host], len(loss.stranded))
                self.assertEqual(worst, {
                    loss.host: len(loss.stranded) for loss in failover.check(
                        found, names, at_once=2).hosts})
            for lost in pairs[:2]:
                losses = failover.check(found, lost, together=True).hosts
                self._compare(found, losses, [lost], seen)
                plan = drain.evacuate(found, lost)
                better = len(plan.moves) - sum(
                    loss.evacuable for loss in losses)
                seen['better'] += better > 0
                self.assertTrue(better >= 0 or plan.failed or not plan.exact,
                                (lost, plan))

        check()
        print('failover: %s' % seen)
        self.assert_seen(seen['stranded'], 0)
        self.assert_seen(seen['sure'], seen['losses'] // 4)

    def _compare(self, found, losses, lost, seen):
        refused = {}
        for names in lost:
            refused.update(evacuated(found, names))
        stranded = {
            each.server_id for loss in losses for each in loss.stranded}
        self.assertEqual(set(refused), stranded, (lost, refused))
        # Nothing is lacking if all hosts are lost.
        alone = len(lost[0]) == len(found.hosts)
        self.assertTrue(all(each.obstacle or each.lacks or alone
                            for loss in losses for each in loss.stranded))
        seen['losses'] += len(lost)
        seen['guests'] += sum(loss.servers for loss in losses)
        seen['stranded'] += len(stranded)
