# SPDX-License-Identifier: Apache-2.0
"""NFVTopologyFilter against Nova's NUMATopologyFilter on generated clouds.

Both must accept the same hosts, and what ours leaves for the claim on the
compute node must let that claim succeed.  The number of cases comes from the
environment, ``NFV_SCHED_EQUIVALENCE_CASES``.

Nova goes through permutations of host cells.  Cases with more than
``MAX_PERMUTATIONS`` of them are skipped, and counted.
"""

import logging
import math
import os

import hypothesis
from hypothesis import strategies as st
from nova.scheduler.filters import numa_topology_filter
from nova.virt import hardware

from nfv_sched.filters import nfv_topology
from nfv_sched.fit.numa import walk
from nfv_sched.tests import base
from nfv_sched.tests import strategies

CASES = int(os.environ.get('NFV_SCHED_EQUIVALENCE_CASES', '200'))
# Which cases hypothesis makes depends on the constants in the modules that the
# process has imported, so on its other tests. Among few cases a kind of them
# may be missing.
ENOUGH = 400
MAX_PERMUTATIONS = 50000

SETTINGS = hypothesis.settings(
    max_examples=CASES, deadline=None, database=None,
    derandomize='NFV_SCHED_EQUIVALENCE_RANDOM' not in os.environ,
    suppress_health_check=list(hypothesis.HealthCheck))


def permutations(host, guest):
    return math.perm(len(host.cells), len(guest.cells))


class EquivalenceTestCase(base.TestCase):
    def setUp(self):
        super().setUp()
        # Building Nova's debug messages takes longer than its decisions.
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def assert_seen(self, count, least, message=''):
        if CASES >= ENOUGH:
            self.assertGreater(count, least, message)


class TestStockEquivalence(EquivalenceTestCase):
    """The drop-in accepts what Nova's own filter accepts."""

    def setUp(self):
        super().setUp()
        search = walk.search
        self.given_up = 0

        def counted(*args, **kwargs):
            try:
                return search(*args, **kwargs)
            except walk.Undecided:
                self.given_up += 1
                raise

        self.patch(walk, 'search', counted)

    def assert_same(self, expected, state, spec):
        """Assert that ours decides like Nova's; return what it decides.

        Where it gives up a long search, it may accept what Nova refuses, as
        one guest cell got what another had fitted: the claim does so, too.
        """
        self.given_up = 0
        accepted = nfv_topology.NFVTopologyFilter().host_passes(state, spec)
        if expected or not (accepted and self.given_up):
            self.assertEqual(expected, accepted)
        return expected and accepted

    def _stock_accepts(self, state, spec):
        try:
            return numa_topology_filter.NUMATopologyFilter().host_passes(
                state, spec)
        except ValueError:
            # A host cell with CPUs for pinning and no siblings at all makes
            # Nova fail the whole request.
            return False

    def test_same_hosts_and_claimable_limits(self):
        seen = {'run': 0, 'skipped': 0, 'accepted': 0}

        @SETTINGS
        @hypothesis.given(
            host=strategies.host_topologies(),
            guest=strategies.guest_topologies(),
            network=strategies.network_metadata(),
            cpu_ratio=st.sampled_from((1.0, 2.0, 16.0)),
            ram_ratio=st.sampled_from((1.0, 1.5)),
            candidates=st.sampled_from((1, 1, 2)),
            packing=st.sampled_from((False, False, True)))
        def check(host, guest, network, cpu_ratio, ram_ratio, candidates,
                  packing):
            if permutations(host, guest) > MAX_PERMUTATIONS:
                seen['skipped'] += 1
                return
            seen['run'] += 1
            self.flags('compute',
                       packing_host_numa_cells_allocation_strategy=packing)
            stock, ours = (
                strategies.host_state(strategies.clone(host), cpu_ratio,
                                      ram_ratio, candidates=candidates)
                for _ in range(2))
            expected = self._stock_accepts(
                stock, strategies.request_spec(guest, network))
            if not self.assert_same(
                    expected, ours, strategies.request_spec(guest, network)):
                self.assertTrue(
                    self.given_up or 'numa_topology' not in ours.limits)
                return
            seen['accepted'] += 1
            self.assertEqual(len(stock.allocation_candidates),
                             len(ours.allocation_candidates))
            self.assertEqual(
                stock.limits['numa_topology'].obj_to_primitive()[
                    'nova_object.data'].keys(),
                ours.limits['numa_topology'].obj_to_primitive()[
                    'nova_object.data'].keys())
            claim = hardware.numa_fit_instance_to_host(
                strategies.clone(host), strategies.clone(guest),
                provider_mapping=None,
                limits=ours.limits['numa_topology'])
            if candidates == 1:
                self.assertIsNotNone(claim)

        check()
        print('equivalence: %(run)d cases compared, %(accepted)d hosts '
              'accepted, %(skipped)d skipped (more than '
              '%(limit)d permutations)' % dict(seen, limit=MAX_PERMUTATIONS))
        self.assertGreater(seen['run'], CASES // 2)
        self.assert_seen(seen['accepted'], seen['run'] // 20)
