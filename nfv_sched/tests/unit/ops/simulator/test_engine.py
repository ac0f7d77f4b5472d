# SPDX-License-Identifier: Apache-2.0

"""Servers are placed, moved and deleted as Nova would, and books balance."""

import fixtures
from oslo_serialization import jsonutils

from nfv_sched.ops.cloud import problems
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.tests.unit.ops.simulator import base

ONE_HOST = """\
hosts:
  - {name: only, cores: 8, memory: 32 GiB, switch_nodes: [1]}
flavors:
  pinned:
    vcpus: 2
    memory: 1 GiB
    extra_specs: {hw:cpu_policy: dedicated}
  bigger:
    vcpus: 3
    memory: 2 GiB
    extra_specs: {hw:cpu_policy: dedicated}
"""


class RefusalTest(base.SimulatorTestCase):

    def test_without_a_word(self):
        self.useFixture(fixtures.MockPatch(
            'nfv_sched.ops.simulator.conductor.claim',
            side_effect=servers.Refused()))
        result = self.run_cloud(
            ONE_HOST + 'steps: [{boot: a, flavor: pinned, count: 2}]')
        self.assertEqual([False, False], [each.ok for each in result.outcomes])


class PlacementTestCase(base.SimulatorTestCase):

    def test_multi_create_is_all_or_nothing(self):
        with self.simulation(self.cloud("""\
                - boot: s
                  flavor: strict
                  count: 6
                  multi_create: true
                  expect: {refused: true}
                """)) as simulation:
            before = self.books(simulation)
            result = simulation.run()
            self.assertEqual(before, self.books(simulation))
        self.assertEqual([], result.failures)
        # For the same reason as one by one.
        with self.simulation(self.cloud(
                '- {boot: s, flavor: strict, count: 6}')) as simulation:
            simulation.run()
        *placed, refused = [each for each in simulation.outcomes
                            if each.ok or each is simulation.outcomes[-1]]
        reason, _semicolon, server = result.outcomes[0].reason.rpartition('; ')
        self.assertEqual(f'server {len(placed) + 1} of 6 in the request',
                         server)
        self.assertIn(reason, refused.reason)

    def test_host_choice(self):
        self.met("""\
            - boot: a
              flavor: pinned
              host: west
              expect: {host: west}
            - boot: b
              flavor: pinned
              ignore_hosts: [west]
              expect: {host: east}
            - boot: c
              flavor: pinned
              force: west
              expect: {host: west}
            - boot: d
              flavor: strict
              host: east
              count: 3
              expect: {placed: 2, refused: 1, host: east}
            """)

    def test_api_refusal(self):
        head = base.CLOUD + """\
  uneven:
    vcpus: 3
    memory: 1 GiB
    extra_specs: {hw:numa_nodes: 2}
images:
  large: {hw_mem_page_size: large}
"""
        self.met("""\
            - boot: a
              flavor: uneven
              expect: {refused: true, reason: the Nova API refuses}
            - boot: b
              flavor: plain
              image: large
              expect: {refused: true}
            """, head=head)

    def test_stock_filters_say_who_removed_what(self):
        head = base.CLOUD + """\
filters: [ComputeFilter, NUMATopologyFilter]
"""
        result = self.met("""\
            - boot: a
              flavor: huge
              count: 8
              expect: {placed: 7}
            - boot: b
              flavor: pinned
            - host_down: [east, west]
            - delete: a-*
            - boot: c
              flavor: pinned
              expect:
                refused: true
                reason: ComputeFilter removed the last 2 hosts
            """, head=head)
        # East has four CPUs left, two on each node.
        self.assertIn('NUMATopologyFilter removed the last',
                      result.outcomes[7].reason)

    def test_cached_topologies_stay_true(self):
        with self.simulation(self.cloud("""\
                - {boot: s, flavor: strict, count: 3, multi_create: true}
                - {boot: h, flavor: huge, count: 2}
                - {boot: t, flavor: two, count: 5}
                - {live_migrate: s-1}
                """)) as simulation:
            simulation.run()
            cache = simulation.state.manager.cache
            checked = 0
            for host in simulation.state.hosts.values():
                version, parsed = cache[host.uuid]
                if version == host.version:
                    checked += 1
                    self.assertEqual(base.facts(host.topology()),
                                     base.facts(parsed['numa_topology']))
            self.assertGreater(checked, 0)

    def test_what_nova_does_not_know(self):
        for more, message in (
                ('filters: [NoSuchFilter]', 'NoSuchFilter'),
                ('images: {i: {hw_nosuch: 1}}', 'hw_nosuch'),
                ('images: {i: {hw_cpu_policy: maybe}}', 'maybe'),
                # In the form of nova.conf; no Nova takes it.
                ("options: {pci: {alias: ['{\"name\": \"a\", "
                 "\"vendor_id\": \"x\"}']}}", 'Invalid PCI alias'),
                *((f'options: {options}', message) for options, message in (
                    ('{nosuch: {a: 1}}', 'nosuch'),
                    ('{nfv_sched: {nosuch: 1}}', 'nosuch'),
                    ('{DEFAULT: {state_path: /odd}}', 'may not set'),
                    ('{neutron: {endpoint_override: odd}}', 'may not set'),
                    ('{nfv_sched: {decision_journal: /odd}}', 'may not set'),
                    ('{nfv_sched: {expose_reasons: loud}}', 'loud')))):
            error = self.assertRaises(
                problems.InputError, self.run_cloud,
                self.cloud('[]', f'{base.CLOUD}{more}\n'))
            self.assertIn(message, str(error))
            self.assertIn('cloud.yaml:', str(error))


class BooksTestCase(base.SimulatorTestCase):
    """Whatever is taken is given back, to the last page."""

    BOOT = """\
- {boot: s, flavor: strict, networks: [flat]}
- {boot: h, flavor: huge}
- {boot: t, flavor: two}
- {boot: p, flavor: plain}
"""

    HEAD = base.CLOUD.replace('cores: 8',
                              'cores: 8\n    shared_cores_per_node: 1')

    def test_confirm_and_revert_later(self):
        result = self.given_back(
            self.BOOT + "- {cold_migrate: [s, h], confirm: false}\n"
            '- {cold_migrate: s, expect: {refused: 1, reason: VERIFY}}\n'
            '- confirm: s\n- revert: h\n'
            '- {confirm: h, expect: {refused: 1}}\n'
            "- delete: '*'\n")
        by_step = {o.step: o for o in result.outcomes}
        self.assertEqual('ACTIVE', by_step[7].status)

    def test_nowhere_else(self):
        self.given_back(
            '- {boot: s, flavor: pinned}\n'
            '- {live_migrate: s, expect: {refused: 1, '
            'reason: the source of the move}}\n'
            '- delete: s\n', ONE_HOST)

    def test_refused_move_changes_nothing(self):
        text = ('- {boot: s, flavor: strict, host: east}\n'
                '- {boot: x, flavor: pinned, force: west, count: 6}\n')
        moves = ('- {cold_migrate: s, expect: {refused: 1, host: east}}\n',
                 '- {live_migrate: s, expect: {refused: 1}}\n',
                 '- {resize: s, flavor: two, host: west, '
                 'expect: {refused: 1}}\n')
        with self.simulation(self.cloud(text)) as simulation:
            simulation.run()
            before = self.books(simulation)
        for move in moves:
            move = move.replace(', host: east}', '}')
            with self.subTest(move=move):
                with self.simulation(self.cloud(text + move)) as simulation:
                    result = simulation.run()
                    self.assertEqual([], result.failures)
                    self.assertEqual(before, self.books(simulation))
                    self.assertEqual('strict', result.servers[0].flavor_name)

    def test_moves_find_their_networks_tunnelled(self):
        # Nova takes every moved guest for one with a tunnelled network.
        steps = '- {boot: s, flavor: pinned, networks: [flat]}\n'
        with self.simulation(self.cloud(steps)) as simulation:
            simulation.run()
            server = simulation.state.servers['s']
            self.assertFalse(server.spec.network_metadata.tunneled)
            spec = request.of_move(simulation.state, server, None, ())
            self.assertTrue(spec.network_metadata.tunneled)
            self.assertEqual({'physnet0'}, spec.network_metadata.physnets)
            port = spec.requested_networks[0]
            self.assertTrue(port.port_id and port.network_id)

    def test_failed_claim_goes_on_to_an_alternate(self):
        # Something the scheduler does not know of takes the CPUs of the
        # first choice between its decision and the claim.
        with self.simulation(self.cloud(
                '- {boot: s, flavor: pinned}\n')) as simulation:
            select = simulation.state.scheduler.select

            def select_late(*args, **kwargs):
                lists = select(*args, **kwargs)
                host = simulation.state.hosts[lists[0][0].service_host]
                topology = host.topology()
                for cell in topology.cells:
                    cell.pinned_cpus = set(cell.pcpuset)
                host.node.numa_topology = jsonutils.dumps(
                    topology.obj_to_primitive())
                self.full = host.name
                return lists

            simulation.state.scheduler.select = select_late
            result = simulation.run()
            outcome = result.outcomes[0]
            self.assertTrue(outcome.ok)
            self.assertNotEqual(self.full, outcome.destination)
            self.assertIn(f'claim failed on {self.full}', outcome.notes[0])
            provider = simulation.state.placement.providers[
                simulation.state.hosts[self.full].uuid]
            self.assertEqual({}, provider.used)


class MixedTestCase(base.SimulatorTestCase):
    HEAD = base.CLOUD.replace(
        'cores: 8', 'cores: 8\n    shared_cores_per_node: 1\n'
        '    cpu_allocation_ratio: 2') + """\
  mixed:
    vcpus: 3
    memory: 1 GiB
    extra_specs: {hw:cpu_policy: mixed, hw:cpu_dedicated_mask: ^0}
"""

    def test_cpus(self):
        with self.simulation(self.cloud(
                '- {boot: m, flavor: mixed, host: east}\n',
                self.HEAD)) as simulation:
            simulation.run()
            host = simulation.state.hosts['east']
            used = simulation.state.placement.providers[host.uuid].used
            self.assertEqual((2, 1), (used['PCPU'], used['VCPU']))
            server = simulation.state.servers['m']
            (node,) = server.nodes
            shared = host.record.nodes[node].shared
            self.assertEqual((((0,), tuple(sorted(shared))),), server.floating)
            self.assertEqual((2, 2), (len(server.pinned_cpus), server.cores))
            self.assertFalse(set(server.pinned_cpus) & shared)


class ExpectationTestCase(base.SimulatorTestCase):

    def failures(self, expect, flavor='strict', count=1):
        return self.run_cloud(self.cloud(
            f'- {{boot: s, flavor: {flavor}, count: {count}, host: east, '
            f'expect: {expect}}}\n')).failures

    def test_not_met(self):
        for expect, message in (
                ('{placed: 0}', 'expected 0 placed, got 1'),
                ('{refused: true}', 'expected 1 refused, got 0 (s-1 on east'),
                ('{host: west}', 'expected host west, got s-1 on east'),
                ('{not_host: east}', 'expected not host east'),
                ('{nodes: [1]}', 'expected host NUMA nodes [1], got s-1 on '
                                 'east nodes [0]'),
                ('{nodes_in: [1]}', 'among [1]'),
                ('{vswitch: remote}', 'expected vSwitch remote'),
                ('{reason: x}', "expected a refusal with 'x', got placed"),
                ('{servers: {s-1: {nodes: [1]}}}',
                 'step 1 (boot s-1): expected')):
            with self.subTest(expect=expect):
                failures = self.failures(expect)
                self.assertEqual(1, len(failures))
                self.assertIn(message, failures[0])
                self.assertTrue(failures[0].startswith('cloud.yaml:'))

    def test_refused_server_meets_nothing(self):
        failures = self.failures('{servers: {s-3: {host: east}}}', count=3)
        self.assertIn('expected host east, got refused: ', failures[0])
