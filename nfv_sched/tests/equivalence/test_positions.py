# SPDX-License-Identifier: Apache-2.0
"""Servers that would be moved against servers that the simulator moves."""

import hypothesis
from hypothesis import strategies as st

from nfv_sched.ops.cloud import actions
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model import movable
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import start
from nfv_sched.tests.equivalence import inhabited
from nfv_sched.tests.equivalence import test_stock

TRIED = 12  # moves of each cloud


def used(providers):
    return {provider.uuid: {name: amount for name, amount
                            in provider.used.items() if amount}
            for provider in providers}


class TestPositions(test_stock.EquivalenceTestCase):

    def migrate(self, found, uuid, host):
        """Live-migrate in the simulator; return the cloud, None if refused."""
        state = start.restored(found)
        simulation = engine.Simulation(state)
        name = next(server.name for server in state.servers.values()
                    if server.uuid == uuid)
        simulation.step(actions.MoveStep(
            action='live_migrate', number=1, host=host, targets=(name,)))
        return state if simulation.outcomes[-1].ok else None

    def assert_left(self, state, arrangement, figures, server):
        counting = capacity.Counting(state, figures=figures)
        for host in counting.hosts():
            if host.name not in arrangement.positions:
                continue
            position = arrangement.positions[host.name]
            self.assertEqual(
                host.room.host and host.room.host.state,
                position.room.host and position.room.host.state, server)
            self.assertEqual(
                sorted(pool['count'] for pool in host.room.devices.pools
                       if pool['count']),
                sorted(pool['count'] for pool in position.room.devices.pools
                       if pool['count']), server)
            self.assertEqual(
                used(state.placement.tree(host.root)),
                used(position.used.providers.values()), server)

    def test_same_moves(self):
        seen = dict.fromkeys(('run', 'moved', 'refused', 'with devices',
                              'kept for a preference'), 0)

        @hypothesis.settings(
            test_stock.SETTINGS, max_examples=max(10, test_stock.CASES // 5))
        @hypothesis.given(cloud=inhabited.clouds(3, 8), data=st.data())
        def check(cloud, data):
            seed, found = cloud
            hypothesis.assume(found.servers)
            names = [host.name for host in found.hosts]
            moves = data.draw(st.lists(st.tuples(
                st.sampled_from(found.servers), st.sampled_from(names)),
                max_size=TRIED))
            figures = any(host.network for host in found.hosts)
            with start.started(found) as state:
                known = arrangements.Positions(found, state)
                for server, host in moves:
                    if host == server.host:
                        continue
                    seen['run'] += 1
                    arrangement = None
                    if known.why_not(movable.LIVE, server.uuid) is None:
                        arrangement = known.move(
                            arrangements.Arrangement(), server.uuid, host)
                    actual = self.migrate(found, server.uuid, host)
                    text = f'{server.name} to {host}, seed {seed}'
                    if arrangement is None:
                        picky = server.group or any(
                            'prefer' in value for value
                            in server.flavor.extra_specs.values())
                        if actual is not None and picky:
                            seen['kept for a preference'] += 1
                            continue
                        self.assertIsNone(actual, text)
                        seen['refused'] += 1
                        continue
                    self.assertIsNotNone(actual, text)
                    seen['moved'] += 1
                    seen['with devices'] += bool(server.devices)
                    self.assert_left(actual, arrangement, figures, text)

        check()
        print('positions: %s' % seen)
        self.assert_seen(seen['moved'], seen['run'] // 10)
