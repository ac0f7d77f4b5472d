# SPDX-License-Identifier: Apache-2.0

import dataclasses

import fixtures
from nova import exception
from nova.scheduler import filters as nova_filters

from nfv_sched.base import reasons
from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.answers.explain import scheduling
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator import record
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.unit.ops.simulator import base

CLOUD = """\
hosts:
  - name: small
    cores: 4
    memory: 8 GiB
    switch_nodes: [0]
    shared_cores_per_node: 0
    traits: [CUSTOM_FAST]
  - name: big
    cores: 12
    memory: 64 GiB
    pages: {2M: 4096}
    switch_nodes: [1]
    shared_cores_per_node: 0
  - name: shut
    cores: 12
    memory: 64 GiB
    switch_nodes: [0, 1]
    shared_cores_per_node: 0
    disabled: true
networks:
  tun: {tunneled: true}
server_groups:
  apart: {policy: anti-affinity}
flavors:
  pinned:
    vcpus: 2
    memory: 1 GiB
    extra_specs: {hw:cpu_policy: dedicated}
steps:
  - {boot: first, flavor: pinned}
"""


class ExplanationTestCase(base.QuietTestCase):

    def explain(self, vcpus=2, memory=1024, text=CLOUD, state=None,
                present=None, relax_seconds=60, hints=None, group=None,
                count=1, zone=None, **specs):
        """Explain a flavor; extra specs with ``__`` for a colon."""
        asked = subject.ExplainSubject(
            text='it', present=present, requested=request.BootRequest(
                flavor=snapshot.Flavor(
                    name='f', vcpus=vcpus, memory=memory, extra_specs={
                        name.replace('__', ':'): value
                        for name, value in specs.items()}),
                hints=hints or {}, group=group, count=count, zone=zone))
        if state is not None:
            return explanation.explain(state, asked,
                                       relax_seconds=relax_seconds)
        with self.simulation(text) as simulation:
            simulation.run()
            before = self.books(simulation)
            found = explanation.explain(
                simulation.state, asked, relax_seconds=relax_seconds)
            self.assertEqual(before, self.books(simulation))
            return found

    def host(self, found, name):
        return next(host for host in found.hosts if host.host == name)

    def changes(self, found):
        return {each.text: each.hosts for each in found.changes}


class ExplanationTest(ExplanationTestCase):

    def test_in_shadow(self):
        """What a filter in shadow would refuse is told, and has no effect."""
        text = CLOUD + ('options:\n  nfv_sched: '
                        '{shadow: [VSwitchNUMAAffinityFilter]}\n')
        keys = {'hw__cpu_policy': 'dedicated',
                'nfv__vswitch_numa_affinity': 'strict'}
        found = self.explain(5, text=text, **keys)
        host = self.host(found, 'small')
        self.assertEqual((), host.refusals_in_shadow)
        found = self.explain(4, text=text.replace(
            'switch_nodes: [0]', 'switch_nodes: []'), **keys)
        host = self.host(found, 'small')
        self.assertTrue(host.passes)
        self.assertEqual((), host.refusals)
        refusal, = host.refusals_in_shadow
        self.assertEqual(
            ('VSwitchNUMAAffinityFilter', 'nfv:vswitch_numa_affinity=strict'),
            (refusal.filter, refusal.key))

    def test_search_without_end(self):
        """Nova's own filter would try each arrangement of 16 NUMA nodes."""
        found = self.explain(
            72, 8192, """
hosts: [{name: big, numa_nodes: 16, cores: 8, memory: 64 GiB}]
flavors: {small: {vcpus: 1, memory: 1 GiB}}
options:
  filter_scheduler: {enabled_filters: [NUMATopologyFilter]}
steps: [{boot: s, flavor: small}]
""", relax_seconds=0, hw__numa_nodes='8', hw__cpu_policy='dedicated')
        self.assertFalse(found.fits)
        refusal, = self.host(found, 'big').refusals
        self.assertEqual('NUMATopologyFilter', refusal.filter)
        self.assertIn('5000000 arrangements', refusal.why)

    def test_host_without_mapping(self):
        cloud = self.recorded(CLOUD)
        cloud = dataclasses.replace(cloud, hosts=tuple(
            dataclasses.replace(host, mapped=host.name == 'shut')
            for host in cloud.hosts))
        with start.started(cloud) as state:
            self.assertEqual(cloud.hosts, record.cloud(state).hosts)
            found = self.explain(state=state, hw__cpu_policy='dedicated')
        self.assertFalse(found.fits)
        for name in ('small', 'big'):
            refusal, = self.host(found, name).refusals
            self.assertEqual(
                ('ComputeFilter', 'unmapped'),
                (refusal.filter, refusal.kind))
            self.assertIn('nova-manage cell_v2 discover_hosts', refusal.why)
        self.assertEqual(1, self.changes(found)[
            'big mapped (nova-manage cell_v2 discover_hosts)'])

    def test_nearest_first(self):
        """By the part that is missing, in the reason and of the hosts."""
        text = """
hosts:
  - {name: few, cores: 6, memory: 16 GiB, pages: {1G: 8},
     shared_cores_per_node: 0}
  - {name: pages, cores: 10, memory: 16 GiB, pages: {1G: 2},
     shared_cores_per_node: 0}
  - {name: more, cores: 8, memory: 16 GiB, pages: {1G: 8},
     shared_cores_per_node: 0}
flavors: {one: {vcpus: 1, memory: 64}}
steps: [{boot: a, flavor: one}]
"""
        found = self.explain(
            vcpus=9, text=text, memory=4096, hw__cpu_policy='dedicated',
            hw__mem_page_size='1GB', relax_seconds=0)
        shortages = {host.host: refusal.lacks for host in found.hosts
                     for refusal in host.refusals}
        self.assertEqual({
            'few': (reasons.Resource.DEDICATED_CPUS, 9, 6),
            'pages': (reasons.Resource.PAGES, 4096, 2048),
            'more': (reasons.Resource.DEDICATED_CPUS, 9, 8)}, {
                host: (*each.amount[:2], each.free)
                for host, each in shortages.items()})
        self.assertEqual(('more', 'few', 'pages'), found.nearest)
        self.assertEqual('more', found.reason.partition(':')[0])

    def test_group(self):
        text = CLOUD.replace('flavor: pinned}', 'flavor: pinned, count: 2, '
                             'group: apart}')
        found = self.explain(group='apart', text=text,
                             hw__cpu_policy='dedicated')
        self.assertFalse(found.fits)
        self.assertEqual(
            ['1 of the server group there'],
            [refusal.why for refusal in self.host(found, 'big').refusals])
        self.assertIn('outside its server group', self.changes(found))

    def test_api_refuses(self):
        found = self.explain(
            text=CLOUD.replace('per_node: 0', 'per_node: 1'),
            hw__cpu_policy='sometimes')
        self.assertFalse(found.fits)
        self.assertIn('the Nova API refuses the flavor', found.reason)
        self.assertIn('without hw:cpu_policy', self.changes(found))

    def test_refused_without_a_word(self):
        self.useFixture(fixtures.MockPatch(
            'nfv_sched.ops.simulator.conductor.select',
            side_effect=servers.Refused()))
        found = self.explain(hw__cpu_policy='dedicated')
        self.assertEqual((False, None), (found.fits, found.reason))
        self.assertEqual((), found.changes)


class _Picky(nova_filters.BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        if host_state.host == 'big':
            raise TypeError('no luck')
        return True


class _Final(nova_filters.BaseHostFilter):
    def filter_all(self, hosts, spec_obj):
        raise exception.NoValidHost(reason='mine')


class OthersTest(ExplanationTestCase):
    def test_filter_that_raises(self):
        with self.simulation(CLOUD) as simulation:
            state = simulation.state
            state.manager.enabled_filters[0].inner = _Picky()
            found = self.explain(state=state, hw__cpu_policy='dedicated',
                                 relax_seconds=0)
            self.assertFalse(found.fits)
            self.assertIn('TypeError: no luck', found.reason)
            self.assertEqual('TypeError: no luck', found.filters[0].error)
            (refusal,) = self.host(found, 'big').refusals
            self.assertTrue(refusal.raised)
            self.assertEqual('raised TypeError: no luck', refusal.why)
            self.assertEqual((), self.host(found, 'small').refusals)

    def test_filter_that_ends_the_request(self):
        with self.simulation(CLOUD) as simulation:
            state = simulation.state
            state.manager.enabled_filters.append(_Final())
            found = self.explain(state=state, hw__cpu_policy='dedicated',
                                 relax_seconds=0)
            self.assertEqual('mine', found.reason)
            self.assertEqual(3, found.filters[-1].refuses_alone)

    def test_odd_record(self):
        with self.simulation(CLOUD) as simulation:
            state = simulation.state
            host = state.hosts['big']
            host.node.numa_topology = '{"nova_object.name": "Odd"}'
            host.version += 1
            found = self.explain(state=state, hw__cpu_policy='dedicated',
                                 relax_seconds=0)
            self.assertEqual(3, len(found.hosts))
            self.assertTrue(all(
                refusal.raised for refusal in self.host(
                    found, 'big').refusals))
            self.assertEqual((), self.host(found, 'small').refusals)


class UnknownNameTest(ExplanationTestCase):
    """Placement refuses a request with a name that it does not know."""

    def test_unknown_names(self):
        for key, value, kind, name in (
                ('trait:CUSTOM_NOWHERE', 'forbidden', 'trait',
                 'CUSTOM_NOWHERE'),
                ('trait:CUSTOM_NOWHERE', 'required', 'trait',
                 'CUSTOM_NOWHERE'),
                ('resources:CUSTOM_X', '1', 'resource class', 'CUSTOM_X')):
            found = self.explain(**{
                'hw__cpu_policy': 'dedicated', key.replace(':', '__'): value})
            self.assertFalse(found.fits)
            self.assertEqual((placement.Unknown(kind, name),),
                             found.placement.unknown)
            self.assertIn(f'knows no {kind} {name}', found.reason)
            self.assertEqual({(f'knows no {kind} {name}',)},
                             {host.misses for host in found.hosts})
            # Nothing else makes it fit, whatever it leaves.
            self.assertEqual({f'without {key}'}, {
                each.text for each in found.changes
                if not each.text.startswith('flavor ')})

    def test_malformed_queries(self):
        """Placement answers them with status 400: nothing boots or counts."""
        for specs in ({'resources1:CUSTOM_X': '1', 'resources2:CUSTOM_X': '1'},
                      {'traits:CUSTOM_FAST': 'required'},
                      {f'resources:{name}': '0'
                       for name in ('VCPU', 'MEMORY_MB', 'DISK_GB')}):
            found = self.explain(**{key.replace(':', '__'): value
                                    for key, value in specs.items()})
            self.assertFalse(found.fits)
            self.assertTrue(found.placement.refused)
            self.assertIn(found.placement.refused, found.reason)
            self.assertEqual({(found.placement.refused,)},
                             {host.misses for host in found.hosts})
            counted, = capacity.capacities(self.recorded(CLOUD), [
                snapshot.Flavor(
                    name='f', vcpus=1, memory=64, extra_specs=specs)])
            self.assertEqual(0, counted.fits)
            self.assertIn(found.placement.refused, counted.error)

    def test_not_read(self):
        """Of an older snapshot, what is not certain is said."""
        cloud = dataclasses.replace(self.recorded(CLOUD), traits=None)
        with start.started(cloud) as state:
            found = self.explain(
                state=state, hw__cpu_policy='dedicated',
                trait__CUSTOM_NOWHERE='forbidden')
        self.assertTrue(found.fits)
        self.assertEqual(
            (placement.Unknown('trait', 'CUSTOM_NOWHERE'),),
            found.placement.unverified)
        self.assertIn('CUSTOM_NOWHERE', ' '.join(found.assumed))

    def test_accelerators(self):
        found = self.explain(hw__cpu_policy='dedicated',
                             accel__device_profile='gpus')
        self.assertIn('accel:device_profile', ' '.join(found.assumed))


class _Weigher:
    minval = maxval = None


class _RAM(_Weigher):
    pass


class _Prefer(_Weigher):
    minval, maxval = 0, 1


class WeightsTest(tests_base.TimedTestCase):

    def explain(self, *weighers):
        hosts = ('a', 'b', 'c')
        return explanation.weigh(scheduling.Course(
            passed=hosts, weighers=[
                scheduling.Weighed(weigher, hosts, raw, [multiplier] * 3)
                for weigher, raw, multiplier in weighers]))

    def test_order_and_what_decides(self):
        found = self.explain((_RAM(), (10, 20, 30), 1.0),
                             (_Prefer(), (0, 1, 0), 1000.0))
        self.assertEqual(
            [('b', 1000.5), ('c', 1.0), ('a', 0.0)],
            [(each.host, each.weight) for each in found.hosts])
        ram, prefer = found.weighers
        self.assertEqual(('_RAM', None), (ram.weigher, ram.first_without_it))
        self.assertEqual(('_Prefer', 'c'),
                         (prefer.weigher, prefer.first_without_it))
        self.assertEqual(('b', 20, .5, 1.0), (
            ram.weights[0].host, ram.weights[0].raw,
            ram.weights[0].normalized, ram.weights[0].multiplier))
        self.assertEqual(1, found.equal_hosts)

    def test_equal(self):
        found = self.explain((_RAM(), (5, 5, 5), 1.0),
                             (_Prefer(), (1, 1, 0), 2.0))
        self.assertEqual(2, found.equal_hosts)
        self.assertEqual([None, None], [
            each.first_without_it for each in found.weighers])
