# SPDX-License-Identifier: Apache-2.0
"""Clouds with hosts added and removed: what is counted there, and booted.

Servers run in the generated clouds.  An added host takes as many as the host
that it is like would if that were empty.  The number of clouds is a hundredth
of ``NFV_SCHED_EQUIVALENCE_CASES``.
"""

import hypothesis
from hypothesis import strategies as st

from nfv_sched.ops.cloud import changed_hosts
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.simulator import start
from nfv_sched.tests.equivalence import inhabited
from nfv_sched.tests.equivalence import test_clouds
from nfv_sched.tests.equivalence import test_stock


class TestChangedHosts(test_stock.EquivalenceTestCase):

    def test_same_number_of_servers(self):
        seen = dict.fromkeys(('run', 'skipped', 'servers', 'on new hosts'), 0)

        @hypothesis.settings(
            test_stock.SETTINGS,
            max_examples=max(10, test_stock.CASES // 100))
        @hypothesis.given(cloud=inhabited.clouds(3, 8), data=st.data())
        def check(cloud, data):
            seed, before = cloud
            like = data.draw(st.sampled_from(before.hosts)).name
            after, names = changed_hosts.added(
                before, like, data.draw(st.integers(1, 2)))
            gone = data.draw(st.sets(st.sampled_from(
                [host.name for host in before.hosts]), max_size=1))
            after = changed_hosts.removed(after, gone)
            new = capacity.NewServers(ports=0)
            counted = capacity.capacities(after, after.flavors, new)
            empty = capacity.capacities(
                before, before.flavors, new, hosts={like}, empty=True)
            with start.started(after) as state:
                state.placement.shuffled = False
                for found, alone in zip(counted, empty):
                    text = f'{found.flavor.name}, seed {seed}'
                    fits = {name: host.fits
                            for name, host in found.hosts.items()}
                    self.assertEqual(
                        {alone.fits}, {fits[name] for name in names}, text)
                    if found.fits > test_clouds.MOST:
                        seen['skipped'] += 1
                        continue
                    self.assertEqual(fits, test_clouds.boot_until_refused(
                        state, found.flavor.name), text)
                    seen['run'] += 1
                    seen['servers'] += found.fits
                    seen['on new hosts'] += sum(
                        fits[name] for name in names)

        check()
        print('capacity, changed hosts: %s' % seen)
        self.assert_seen(seen['on new hosts'], seen['run'])
