#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""Limits of ports and rules, on Nova's HostState and RequestSpec."""

import functools
import gc
import time
import weakref

import fixtures
from nova import exception
from nova import objects
from nova.scheduler import filters as nova_filters

from nfv_sched.filters import nfv_topology
from nfv_sched.filters import pci_numa_affinity
from nfv_sched.filters import security_rule_limit
from nfv_sched.filters import vswitch_numa_affinity
from nfv_sched.filters import vswitch_port_limit
from nfv_sched.ledger import names as ledger_names
from nfv_sched.ledger import reader
from nfv_sched.network import demand as network_demand
from nfv_sched.network import recent
from nfv_sched.network import sources
from nfv_sched.network import turn
from nfv_sched.network import usage
from nfv_sched.network import visit
from nfv_sched import request as nfv_request
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.network import snapshots

UUIDS = ['11111111-0000-0000-0000-%012d' % number for number in range(9)]
PORTS = vswitch_port_limit.VSwitchPortLimitFilter()
RULES = security_rule_limit.SecurityRuleLimitFilter()


class NetworkTestCase(base.TestCase):
    """Filters as Nova calls them."""

    def setUp(self):
        super().setUp()
        self.handler = nova_filters.HostFilterHandler()
        self.sources = sources.Sources(snapshots.Figures())
        self.recent = self.sources.recent
        self.flags(vswitch_physical_ports=2, vswitch_ports_per_node=10,
                   expose_reasons='summary')

    def spec(self, ports=1, groups=(), instance=UUIDS[0], move=False,
             devices=(), ids=()):
        """A request for so many ports.

        :param ids: UUIDs of ports that exist, instead of new ones
        """
        spec = clouds.spec(numa=False, move=move, devices=devices)
        nics = [objects.NetworkRequest(port_id=port) for port in ids] or [
            objects.NetworkRequest(network_id='net') for _ in range(ports)]
        if not ports and not ids:
            nics = [objects.NetworkRequest(network_id='none')]
        spec.requested_networks = objects.NetworkRequestList(objects=nics)
        spec.security_groups = objects.SecurityGroupList()
        spec.security_groups.objects = [
            objects.SecurityGroup(uuid=group) for group in groups]
        spec.project_id = 'p'
        spec.instance_uuid = instance
        nfv_request.note_of(spec).sources = self.sources
        return spec

    def host(self, name='host1', uuid=None, metadata=None):
        host = clouds.host(name)
        host.uuid = uuid or UUIDS[5]
        host.aggregates = []
        if metadata:
            host.aggregates.append(objects.Aggregate(
                id=1, hosts=[name], metadata=metadata))
        return host

    def neutron(self, *ports, **figures):
        """What Neutron shows; ``number`` is how many such ports."""
        expanded = []
        for port in ports:
            port = dict(port)
            expanded += [port] * port.pop('number', 1)
        return self.show(snapshots.snapshot(expanded, **figures))

    def show(self, snapshot):
        """From now on these are the figures; None if there are none."""
        self.sources.figures = snapshots.Figures(snapshot)
        return self.sources.figures

    def passing(self, hosts, spec, *filters, index=0):
        """Names of the hosts that pass."""
        left = self.handler.get_filtered_objects(
            list(filters or (PORTS, RULES)), hosts, spec, index)
        return [host.host for host in left or ()]

    def refused(self, hosts, spec, *filters):
        """Why none passes."""
        error = self.assertRaises(
            exception.NoValidHost, self.passing, hosts, spec, *filters)
        return error.kwargs['reason']


class TestPorts(NetworkTestCase):
    """Ports of the virtual switch."""

    def test_limit(self):
        """The last port is given, the one after it refused with figures."""
        self.neutron({'number': 5}, {'owner': 'network:dhcp'},
                     {'owner': 'network:router_interface'})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(1)))
        self.assertEqual(
            'vSwitch ports: 2 needed, 1 of 10 free (1 host)',
            self.refused([self.host()], self.spec(2)))

    def test_default_limit(self):
        """254 ports by default, 4 of them physical."""
        self.config.reset()
        self.flags(expose_reasons='summary')
        self.neutron({'number': 249})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(1)))
        self.assertEqual(
            'vSwitch ports: 2 needed, 1 of 254 free (1 host)',
            self.refused([self.host()], self.spec(2)))

    def test_default_reason(self):
        """The same words, however many ports, hosts and figures there are.

        What is wrong with the request is said in full.
        """
        self.flags(expose_reasons='policy', stale_snapshot_policy='deny',
                   vnics_per_guest=3, network_services_per_node=5)
        spec = functools.partial(self.spec, 2)
        for ports in (7, 8, 20):
            for hosts in (1, 3):
                for age in (0, 301, 1000):
                    self.neutron(*(
                        {'number': ports, 'host': f'host{number}'}
                        for number in range(hosts)), age=age)
                    self.assertEqual(
                        'vSwitch ports: 2 needed, no host has it',
                        self.refused([self.host(f'host{number}')
                                      for number in range(hosts)], spec()))
        self.neutron(dhcp={'host1': 6})
        self.assertEqual(
            'DHCP servers and routers: room beside them needed, no host has '
            'it', self.refused([self.host()], spec()))
        self.neutron({'number': 20, 'host': 'host2'}, dhcp={'host1': 6})
        self.assertEqual(
            'DHCP servers and routers: room beside them needed; vSwitch '
            'ports: 2 needed; no host has all of it',
            self.refused([self.host(), self.host('host2')], spec()))
        host = self.host('host3', metadata={'vnics_per_guest': '1'})
        self.assertEqual(
            'vNICs of a guest: 2 needed, at most 1 allowed; vSwitch ports: 2 '
            'needed, no host has it',
            self.refused([host, self.host('host2')], spec()))
        self.assertEqual(
            'vNICs of a guest: 4 needed, at most 3 allowed',
            self.refused([self.host()], self.spec(4)))

    def test_best_host(self):
        """The summary has the host that came closest."""
        self.neutron({'number': 8}, {'number': 7, 'host': 'host2'})
        self.assertEqual(
            'vSwitch ports: 2 needed, best host: 1 of 10 free (2 hosts)',
            self.refused([self.host(), self.host('host2')], self.spec(2)))
        self.assertEqual(['host2'], self.passing(
            [self.host(), self.host('host2')], self.spec(1)))

    def test_no_limit(self):
        """0 turns a limit off, by option and by aggregate."""
        self.neutron({'number': 500})
        self.assertEqual([], self.passing(
            [self.host()], self.spec(1), index=1))
        self.assertEqual(['host1'], self.passing(
            [self.host(metadata={'vswitch_ports_per_node': '0'})],
            self.spec(1)))
        self.flags(vswitch_ports_per_node=0)
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(1)))

    def test_aggregates(self):
        """The lowest of the aggregates counts; text does not."""
        self.neutron({'number': 3})
        host = self.host(metadata={'vswitch_ports_per_node': '6'})
        host.aggregates += [
            objects.Aggregate(id=2, metadata={'vswitch_ports_per_node': 'x'}),
            objects.Aggregate(id=3, metadata={
                'vswitch_ports_per_node': '7', 'vswitch_physical_ports': '3'}),
            objects.Aggregate(id=4, metadata={'vswitch_ports_per_node': '0',
                                              'vswitch_physical_ports': '1'})]
        self.assertEqual(
            'vSwitch ports: 1 needed, 0 of 6 free (1 host)',
            self.refused([host], self.spec(1)))
        self.assertIn('vswitch_ports_per_node=x', self.log.output)

    def test_beside_the_switch(self):
        """A full switch is no matter for SR-IOV, nor for no network."""
        self.neutron({'number': 20}, {
            'id': 'vf', 'vnic_type': 'direct', 'host': ''})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(ids=['vf'])))
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(0)))

    def test_per_guest(self):
        """A new guest has at most so many interfaces and devices."""
        self.neutron()
        self.flags(vnics_per_guest=3, sriov_vfs_per_guest=2,
                   pci_nics_per_guest=1)
        host = self.host()
        self.assertEqual(
            'vNICs of a guest: 4 needed, at most 3 allowed (1 host)',
            self.refused([host], self.spec(4)))
        self.assertEqual(['host1'], self.passing([host], self.spec(3)))
        self.assertEqual(
            'VFs of a guest: 3 needed, at most 2 allowed (1 host)',
            self.refused([host], self.spec(
                1, devices=[clouds.pci_request(3)])))
        self.assertEqual(
            'PFs of a guest: 2 needed, at most 1 allowed (1 host)',
            self.refused([host], self.spec(
                0, devices=[clouds.pci_request(2, dev_type='type-PF')])))
        self.assertEqual(['host1'], self.passing(
            [host], self.spec(4, move=True)))

    def test_services(self):
        """A host with too many DHCP servers and routers takes no guests."""
        self.flags(network_services_per_node=5)
        self.neutron(dhcp={'host1': 3, 'host2': 3},
                     routers={'host1': 3, 'host2': 2})
        self.assertEqual(['host2'], self.passing(
            [self.host(), self.host('host2')], self.spec()))
        self.assertEqual(
            'DHCP servers and routers: room beside them needed, 6 on the '
            'host, at most 5 allowed (1 host)',
            self.refused([self.host()], self.spec()))

    def test_services_and_a_guest_that_stays(self):
        """It adds no DHCP server, so it is not sent away for them."""
        self.flags(network_services_per_node=5)
        self.neutron({'instance': UUIDS[0]}, dhcp={'host1': 3},
                     routers={'host1': 3})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(move=True)))
        self.assertEqual([], self.passing(
            [self.host()], self.spec(move=True, instance=UUIDS[1]), index=1))

    def test_same_host(self):
        """A guest that stays takes nothing that it does not have."""
        self.neutron({'number': 4}, {'number': 4, 'instance': UUIDS[0]})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(4, move=True)))
        self.assertEqual([], self.passing(
            [self.host()], self.spec(4, move=True, instance=UUIDS[1]),
            index=1))

    def test_full_host_with_ports_of_others(self):
        """What names a server is not its own where it is not, or not its."""
        for port, host in (({'project': 'q'}, 'host1'), ({}, 'host2')):
            self.useFixture(fixtures.MonkeyPatch(
                'nfv_sched.nova.scheduler.host_of_server',
                {UUIDS[0]: host}.get))
            self.neutron({'number': 4},
                         {'number': 4, 'instance': UUIDS[0], **port})
            self.assertEqual(
                'vSwitch ports: 4 needed, 0 of 10 free (1 host)',
                self.refused([self.host()], self.spec(4, move=True)))

    def test_ports_of_others(self):
        """What others say is a server's does not move with it."""
        self.neutron({'number': 7}, {'instance': UUIDS[0], 'host': 'host2'},
                     {'number': 40, 'instance': UUIDS[0], 'host': 'host2',
                      'project': 'q'},
                     {'number': 40, 'instance': UUIDS[0], 'host': ''})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(0, move=True, ids=['port7'])))

    def test_accelerator(self):
        """The port of an accelerator takes none of the switch."""
        self.neutron({'number': 8})
        spec = self.spec(ids=[UUIDS[1]])
        self.refused([self.host()], spec)
        spec = self.spec(ids=[UUIDS[1]])
        # As Nova marks it while it asks Cyborg.
        spec.requested_networks[0].device_profile = 'fpga'
        self.assertEqual(['host1'], self.passing([self.host()], spec))

    def test_stale(self):
        """Without figures that can be believed the policy decides."""
        source = self.neutron({'number': 50}, age=301)
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec()))
        self.flags(stale_snapshot_policy='deny')
        self.assertEqual(
            'vSwitch ports: 1 needed, the figures from Neutron are 301 s old '
            '(1 host)', self.refused([self.host()], self.spec()))
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(0)))
        host = self.host()
        self.flags(stale_snapshot_policy='allow')
        self.passing([host], self.spec())
        source.value = None
        passed = self.host()
        self.passing([passed], self.spec())
        for each in host, passed:
            self.assertTrue(each.allocation_candidates)
        self.assertEqual([], list(self.recent.hosts()))
        self.flags(stale_snapshot_policy='deny')
        source.value = None
        self.assertEqual(
            'vSwitch ports: 1 needed, no figures from Neutron (1 host)',
            self.refused([self.host()], self.spec()))


class TestRules(NetworkTestCase):
    """Security-group rules."""

    def setUp(self):
        super().setUp()
        self.flags(vswitch_ports_per_node=0, security_rules_per_node=100,
                   security_rules_per_port=30)

    def test_limit(self):
        """Rules count once for each port."""
        self.neutron({'number': 8, 'groups': ['a']}, rules={'a': 10, 'b': 5})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(2, ['a'])))
        self.assertEqual(
            'security-group rules: 30 needed, 20 of 100 free (1 host)',
            self.refused([self.host()], self.spec(2, ['a', 'b'])))

    def test_per_port(self):
        """A port of a new guest has at most so many rules."""
        self.neutron(rules={'a': 20, 'b': 11})
        self.assertEqual(
            'security-group rules of a port: 31 needed, at most 30 allowed '
            '(1 host)', self.refused([self.host()], self.spec(1, ['a', 'b'])))
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(1, ['a'])))
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(1, ['a', 'b'], move=True)))

    def test_no_figures(self):
        """Whether there are rules is not known without figures."""
        self.show(None)
        self.flags(stale_snapshot_policy='deny')
        self.assertEqual(
            "security-group rules: those of the guest's ports needed, no "
            'figures from Neutron (1 host)',
            self.refused([self.host()], self.spec(1), RULES))
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(0), RULES))

    def test_unknown_groups(self):
        """They have as many rules as a port may have."""
        source = self.neutron({'number': 8, 'groups': ['a']},
                              rules={'a': 10})
        for assumed, more, need in (
                (30, {}, 30), (0, {}, 128), (30, {'new': 25}, 25)):
            self.flags(security_rules_per_port=assumed)
            source.more = usage.Supplement(rules=more)
            self.assertEqual(
                f'security-group rules: {need} needed, 20 of 100 free '
                '(1 host)', self.refused([self.host()], self.spec(1, ['new'])))

    def test_no_rules(self):
        """A guest without rules goes where there is room for none."""
        self.neutron({'number': 10, 'groups': ['a']}, rules={'a': 10})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(1)))


class TestPlaced(NetworkTestCase):
    """What was placed and Neutron does not show yet."""

    def setUp(self):
        super().setUp()
        self.source = self.neutron({'number': 4})

    def select(self, host, spec, number=1):
        """What Nova does when it has claimed, at the end of a request."""
        for _ in range(number):
            host.consume_from_request(spec)
        return objects.Selection.from_host_state(host)

    def test_next_request(self):
        """The next request knows what the last one took."""
        host, spec = self.host(), self.spec(3)
        self.passing([host], spec)
        self.select(host, spec)
        self.assertEqual(
            'vSwitch ports: 2 needed, 1 of 10 free (1 host)',
            self.refused([self.host()], self.spec(2, instance=UUIDS[1])))

    def test_not_chosen(self):
        """Hosts that passed and were not chosen, and alternates, are free."""
        host, spec = self.host(), self.spec(4)
        self.passing([host], spec)
        objects.Selection.from_host_state(host)
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(4, instance=UUIDS[1])))

    def test_until_neutron_shows_it(self):
        """Nothing counts twice."""
        host, spec = self.host(), self.spec(3)
        self.passing([host], spec)
        self.select(host, spec)
        self.source.value = snapshots.snapshot(
            [{}] * 4 + [{'instance': UUIDS[0]}] * 3)
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(1, instance=UUIDS[1])))
        self.assertEqual([], self.passing(
            [self.host()], self.spec(2, instance=UUIDS[1]), index=1))

    def test_multi_create(self):
        """Within a request, what it has placed already counts."""
        host, spec = self.host(), self.spec(2)
        for index in range(2):
            spec.instance_uuid = UUIDS[index]
            self.assertEqual(['host1'], self.passing(
                [host], spec, index=index))
            host.consume_from_request(spec)
            self.assertEqual((2 * index + 2, 0), self.unseen())
        self.assertEqual({UUIDS[0], UUIDS[1]},
                         set(self.recent.servers_on('host1')))
        spec.instance_uuid = UUIDS[2]
        self.assertEqual([], self.passing([host], spec, index=2))
        # Nova undoes the whole request.
        self.assertEqual((0, 0), self.unseen())

    def test_last_pass(self):
        """Nova filters once more for the last server, after placing it."""
        host, spec = self.host(), self.spec(2)
        for index in range(2):
            spec.instance_uuid = UUIDS[index]
            self.passing([host], spec, index=index)
            host.consume_from_request(spec)
        self.passing([host], spec, index=1)
        objects.Selection.from_host_state(host)
        self.assertEqual({UUIDS[0], UUIDS[1]},
                         set(self.recent.servers_on('host1')))

    def unseen(self):
        return self.recent.unseen(self.sources.figures.get(), 'host1')

    def test_with_steering(self):
        """Limits with labels notice it too, in whatever order."""
        for number, filters in enumerate((
            [PORTS, nfv_topology.NFVTopologyFilter(),
             vswitch_numa_affinity.VSwitchNUMAAffinityFilter()],
            [nfv_topology.NFVTopologyFilter(),
             vswitch_numa_affinity.VSwitchNUMAAffinityFilter(), PORTS],
        )):
            host = self.host('host%d' % number)
            spec = clouds.spec('strict')
            nfv_request.note_of(spec).sources = self.sources
            spec.requested_networks = objects.NetworkRequestList(objects=[
                objects.NetworkRequest(network_id='net')])
            spec.instance_uuid = UUIDS[number]
            self.assertEqual([host.host], self.passing(
                [host], spec, *filters))
            selection = self.select(host, spec)
            self.assertEqual({UUIDS[number]},
                             set(self.recent.servers_on(host.host)))
            self.assertIn('nfv_vswitch', selection.limits.numa_topology
                          .network_metadata.physnets)


class TestContested(NetworkTestCase):
    """Requests that are decided at the same time."""

    def setUp(self):
        super().setUp()
        # Room for three ports.
        self.source = self.neutron(
            {'number': 5}, {'number': 5, 'host': 'host2'})

    def hosts(self, *names):
        return [self.host(name, uuid=UUIDS[6]) for name in names]

    def claim(self, hosts, spec):
        """What Nova does with hosts that are left, until one is claimed.

        :returns: name of the host, None if Nova finds no candidates
        """
        for host in hosts:
            if not host.allocation_candidates:
                continue
            self.assertIn('allocations', host.allocation_candidates[0])
            host.consume_from_request(spec)
            return host.host
        return None

    def place_other(self, ports):
        """A server that our filters have not seen comes to host1."""
        self.recent.add('host1', UUIDS[3], network_demand.NetworkDemand(
            vswitch_ports=ports))

    def requests(self, number, ports, *names, **kwargs):
        """Requests that have all passed the filters."""
        found = []
        for index in range(number):
            spec = self.spec(ports, instance=UUIDS[index], **kwargs)
            hosts = self.hosts(*names)
            self.assertEqual(list(names), self.passing(hosts, spec))
            found.append((hosts, spec))
        return found

    def test_taken(self):
        """Each takes its part, and who finds none is told why."""
        first, second, third = self.requests(3, 2, 'host1', 'host2')
        self.assertEqual('host1', self.claim(*first))
        self.assertEqual('host2', self.claim(*second))
        error = self.assertRaises(
            exception.NoValidHost, self.claim, *third)
        self.assertEqual(
            'vSwitch ports: 2 needed, best host: 1 of 10 free (2 hosts)',
            error.kwargs['reason'])
        self.assertIn(UUIDS[2], self.log.output)

    def test_rules(self):
        """The reason names what is missing."""
        self.flags(security_rules_per_node=80)
        self.neutron({'number': 5, 'groups': ['a']}, rules={'a': 10})
        first, second = self.requests(2, 2, 'host1', groups=['a'])
        self.flags(vswitch_ports_per_node=0)
        self.assertEqual('host1', self.claim(*first))
        error = self.assertRaises(
            exception.NoValidHost, self.claim, *second)
        self.assertEqual(
            'vSwitch ports: 2 needed, 1 of 10 free (1 host)',
            error.kwargs['reason'])
        self.recent.clear()
        first, second = self.requests(2, 2, 'host1', groups=['a'])
        self.assertEqual('host1', self.claim(*first))
        error = self.assertRaises(
            exception.NoValidHost, self.claim, *second)
        self.assertEqual(
            'security-group rules: 20 needed, 10 of 80 free (1 host)',
            error.kwargs['reason'])

    def test_silent(self):
        """Where tenants read no reasons, Nova goes on by itself."""
        self.flags(expose_reasons='none')
        first, second = self.requests(2, 2, 'host1')
        self.claim(*first)
        self.assertIsNone(self.claim(*second))

    def test_later_server(self):
        """A later server of a request does not raise: claims were made."""
        hosts, spec = self.hosts('host1'), self.spec(2)
        self.passing(hosts, spec, index=0)
        self.place_other(1)
        self.assertEqual('host1', self.claim(hosts, spec))
        spec.instance_uuid = UUIDS[1]
        self.assertEqual([], self.passing(hosts, spec, index=1))

    def test_gone_for_a_later_server(self):
        """Nova is left to give back the claims that it has made."""
        hosts, spec = self.hosts('host1'), self.spec(1)
        self.passing(hosts, spec, index=0)
        self.assertEqual('host1', self.claim(hosts, spec))
        spec.instance_uuid = UUIDS[1]
        self.assertEqual(['host1'], self.passing(hosts, spec, index=1))
        self.place_other(2)
        self.assertIsNone(self.claim(hosts, spec))
        self.assertEqual({UUIDS[3]}, set(self.recent.servers_on('host1')))

    def test_placed_past_us(self):
        """Another filter may replace the candidates: its servers count."""
        hosts, spec = self.hosts('host1'), self.spec(1)
        self.passing(hosts, spec, index=0)
        hosts[0].allocation_candidates = list(hosts[0].allocation_candidates)
        self.assertEqual('host1', self.claim(hosts, spec))
        spec.instance_uuid = UUIDS[1]
        self.assertEqual(['host1'], self.passing(hosts, spec, index=1))
        self.place_other(2)
        self.assertIsNone(self.claim(hosts, spec))

    def test_candidates_dropped(self):
        """Our filters that drop candidates keep the claim with them."""
        host = clouds.host(devices={0: 1, 1: 1})
        host.uuid, host.aggregates = UUIDS[6], []
        spec = clouds.spec(
            'strict', devices=[clouds.pci_request(1)], extra_specs={
                'nfv:pci_numa_affinity': 'strict'})
        request_id = spec.pci_requests.requests[0].request_id
        for number, pool in enumerate(host.pci_stats.pools):
            pool['rp_uuid'] = UUIDS[number]
        host.allocation_candidates = [
            {'allocations': {}, 'number': number,
             'mappings': {f'{request_id}-0': [UUIDS[number]]}}
            for number in range(2)]
        nfv_request.note_of(spec).sources = self.sources
        spec.requested_networks = objects.NetworkRequestList(objects=[
            objects.NetworkRequest(network_id='net')])
        spec.instance_uuid = UUIDS[0]
        self.assertEqual(['host1'], self.passing(
            [host], spec, PORTS, nfv_topology.NFVTopologyFilter(),
            vswitch_numa_affinity.VSwitchNUMAAffinityFilter(),
            pci_numa_affinity.PCINUMAAffinityFilter()))
        self.assertEqual(
            [1], [candidate['number'] for candidate in list(
                host.allocation_candidates)])
        self.assertTrue(host.allocation_candidates)
        self.assertEqual({UUIDS[0]}, set(self.recent.servers_on('host1')))

    def test_lost_claim(self):
        """A host where Nova's claim failed is given back."""
        (hosts, spec), = self.requests(1, 2, 'host1', 'host2')
        self.assertTrue(hosts[0].allocation_candidates)
        self.assertEqual({UUIDS[0]}, set(self.recent.servers_on('host1')))
        self.assertTrue(hosts[1].allocation_candidates)
        self.assertNotIn('host1', self.recent.hosts())
        self.assertEqual({UUIDS[0]}, set(self.recent.servers_on('host2')))

    def test_alternates(self):
        """Alternates take nothing."""
        (hosts, spec), = self.requests(1, 2, 'host1', 'host2')
        self.claim(hosts, spec)
        self.assertTrue(hosts[1].allocation_candidates)
        self.assertEqual(['host1'], list(self.recent.hosts()))

    def test_alternates_of_a_changed_request(self):
        """Alternates take nothing if the request was read anew either."""
        (hosts, spec), = self.requests(1, 2, 'host1', 'host2')
        self.claim(hosts, spec)
        spec.flavor = objects.Flavor(name='other', extra_specs={})
        self.assertEqual(['host1', 'host2'], self.passing(hosts, spec))
        self.assertTrue(hosts[1].allocation_candidates)
        self.assertEqual(['host1'], list(self.recent.hosts()))

    def test_again(self):
        """A server that is asked for once more does not stand in its way."""
        (hosts, spec), = self.requests(1, 2, 'host1')
        self.claim(hosts, spec)
        objects.Selection.from_host_state(hosts[0])
        self.assertEqual(['host1'], self.passing(
            self.hosts('host1'), self.spec(2)))

    def test_long_multi_create(self):
        """A request keeps what it took while it goes on."""
        hosts, spec = self.hosts('host1'), self.spec(1)
        now, step = time.monotonic(), 0.8 * recent.TAKE_SECONDS
        for index in range(3):
            spec.instance_uuid = UUIDS[index]
            with fixtures.MonkeyPatch(
                    'time.monotonic', lambda: now + step * index):
                self.assertEqual(['host1'], self.passing(
                    hosts, spec, index=index))
                self.assertEqual('host1', self.claim(hosts, spec))
        with fixtures.MonkeyPatch(
                'time.monotonic', lambda: now + 2.1 * step):
            self.assertEqual([], self.passing(
                self.hosts('host1'), self.spec(1, instance=UUIDS[4]),
                index=None))

    def test_hosts_go_with_their_request(self):
        """Nothing of ours keeps a HostState alive."""
        gc.disable()
        self.addCleanup(gc.enable)
        (hosts, spec), = self.requests(1, 2, 'host1')
        self.claim(hosts, spec)
        gone = weakref.ref(hosts[0])
        hosts.clear()
        del spec
        self.assertIsNone(gone())

    def test_not_placed(self):
        """What Nova does not place after all ends by itself."""
        (hosts, spec), = self.requests(1, 2, 'host1')
        self.assertTrue(hosts[0].allocation_candidates)
        now = time.monotonic()
        self.useFixture(fixtures.MonkeyPatch(
            'time.monotonic', lambda: now + recent.TAKE_SECONDS + 1))
        self.assertEqual(['host1'], self.passing(
            self.hosts('host1'), self.spec(3, instance=UUIDS[1])))

    def test_request_ends(self):
        """What a request took and did not get ends with it."""
        (hosts, spec), = self.requests(1, 2, 'host1')
        self.assertTrue(hosts[0].allocation_candidates)
        other = self.spec(2, instance=UUIDS[1])
        self.assertEqual([], self.passing(
            self.hosts('host1'), other, index=1))
        hosts.clear()
        gc.collect()
        self.assertEqual(['host1'], self.passing(
            self.hosts('host1'), other, index=1))

    def test_placed_stays_without_its_request(self):
        """What a request got does not end with it."""
        (hosts, spec), = self.requests(1, 2, 'host1')
        self.claim(hosts, spec)
        objects.Selection.from_host_state(hosts[0])
        hosts.clear()
        gc.collect()
        self.assertEqual([], self.passing(
            self.hosts('host1'), self.spec(2, instance=UUIDS[1]), index=1))

    def test_placed_stays(self):
        """What Nova places does not end with that."""
        (hosts, spec), = self.requests(1, 2, 'host1')
        self.claim(hosts, spec)
        objects.Selection.from_host_state(hosts[0])
        now = time.monotonic()
        self.useFixture(fixtures.MonkeyPatch(
            'time.monotonic', lambda: now + recent.TAKE_SECONDS + 1))
        self.assertEqual([], self.passing(
            self.hosts('host1'), self.spec(2, instance=UUIDS[1]), index=1))

    def test_multi_create(self):
        """Servers of one request count once each."""
        hosts, spec = self.hosts('host1'), self.spec(1)
        for index in range(3):
            spec.instance_uuid = UUIDS[index]
            self.assertEqual(['host1'], self.passing(
                hosts, spec, index=index))
            self.assertEqual('host1', self.claim(hosts, spec))
        spec.instance_uuid = UUIDS[3]
        self.assertEqual([], self.passing(hosts, spec, index=3))

    def test_failed_multi_create(self):
        """A request that fails keeps nothing; Nova gives all back."""
        hosts, spec = self.hosts('host1'), self.spec(2)
        self.assertEqual(['host1'], self.passing(hosts, spec))
        self.assertEqual('host1', self.claim(hosts, spec))
        self.assertEqual({UUIDS[0]}, set(self.recent.servers_on('host1')))
        spec.instance_uuid = UUIDS[1]
        self.assertEqual([], self.passing(hosts, spec, index=1))
        self.assertEqual([], list(self.recent.hosts()))

    def test_last_pass_without_hosts(self):
        """Without alternates the servers of a request stay all the same."""
        hosts, spec = self.hosts('host1'), self.spec(1)
        for index in range(3):
            spec.instance_uuid = UUIDS[index]
            self.passing(hosts, spec, index=index)
            self.claim(hosts, spec)
        # The last server's own room does not stand in its way.
        self.assertEqual(['host1'], self.passing(hosts, spec, index=2))
        turn.give_back(nfv_request.note_of(spec))
        self.assertEqual(set(UUIDS[:3]), set(self.recent.servers_on('host1')))

    def test_other_filters(self):
        """A look at the candidates by our own filters takes nothing."""
        host = self.host()
        spec = clouds.spec('strict')
        nfv_request.note_of(spec).sources = self.sources
        spec.requested_networks = objects.NetworkRequestList(objects=[
            objects.NetworkRequest(network_id='net')])
        self.assertEqual(['host1'], self.passing(
            [host], spec, PORTS, nfv_topology.NFVTopologyFilter(),
            vswitch_numa_affinity.VSwitchNUMAAffinityFilter(), RULES))
        self.assertEqual([], list(self.recent.hosts()))


class TestLedger(NetworkTestCase):
    """Claims in Placement."""

    def setUp(self):
        super().setUp()
        self.flags(ledger='placement', security_rules_per_node=100)
        self.provider = ledger_names.provider_uuid(UUIDS[5])
        self.summaries = {}

    def ledgers(self, ports=100, rules=1000, **others):
        """From now on Placement says what the ledger of host1 has left."""
        self.summaries = snapshots.summaries({
            UUIDS[5]: {ledger_names.PORTS: ports,
                       ledger_names.RULES: rules}}, **others)

    def spec(self, *args, **kwargs):
        """A request for which Placement was asked."""
        spec = super().spec(*args, **kwargs)
        visit.placement_asked(spec)
        visit.placement_answered(spec, self.summaries)
        return spec

    def claimed(self, host):
        """What each candidate claims in the ledger."""
        return [candidate['allocations'].get(self.provider)
                for candidate in host.allocation_candidates]

    def place(self, ports=1, instance=UUIDS[1]):
        """Nova places another guest on host1, through these filters."""
        spec, host = self.spec(ports, instance=instance), self.host()
        self.assertEqual(['host1'], self.passing([host], spec, PORTS))
        self.assertTrue(host.allocation_candidates)
        host.consume_from_request(spec)

    def test_claimed(self):
        """All candidates claim what the guest takes, once."""
        self.ledgers()
        self.neutron({'number': 3, 'groups': ['a']}, rules={'a': 5})
        host = self.host()
        host.allocation_candidates = [
            {'allocations': {UUIDS[5]: {'resources': {'VCPU': 1}}},
             'mappings': {'': [UUIDS[5]]}} for _ in range(2)]
        spec = self.spec(2, ['a'])
        for _ in range(2):
            self.assertEqual(['host1'], self.passing([host], spec))
            self.assertEqual([{'resources': {
                'CUSTOM_NFV_VSWITCH_PORT': 2,
                'CUSTOM_NFV_SECURITY_RULE': 10}}] * 2, self.claimed(host))
        self.assertEqual({'VCPU': 1}, host.allocation_candidates[0][
            'allocations'][UUIDS[5]]['resources'])

    def test_not_published(self):
        """A host without a ledger is judged by Neutron alone."""
        self.ledgers()
        self.neutron({'number': 8, 'host': 'host2'})
        host, full = (self.host(uuid=UUIDS[6]),
                      self.host('host2', uuid=UUIDS[7]))
        self.assertEqual(['host1'], self.passing([host, full], self.spec()))
        self.assertEqual([None], self.claimed(host))

    def test_not_published_yet(self):
        """Without its trait a provider is none of the ledger."""
        self.ledgers(ports=0)
        self.summaries[self.provider]['traits'].clear()
        self.neutron()
        host = self.host()
        self.assertEqual(['host1'], self.passing([host], self.spec()))
        self.assertEqual([None], self.claimed(host))

    def test_no_inventory(self):
        """What the ledger of a host does not have cannot be claimed there."""
        self.ledgers()
        del self.summaries[self.provider]['resources'][ledger_names.PORTS]
        self.neutron()
        self.assertEqual('vSwitch ports: 1 needed, 0 of 10 free (1 host)',
                         self.refused([self.host()], self.spec()))

    def test_no_ledger_wanted(self):
        """Without the option nothing is claimed."""
        self.flags(ledger='none')
        self.ledgers(ports=0)
        self.neutron()
        host = self.host()
        self.assertEqual(['host1'], self.passing([host], self.spec()))
        self.assertEqual([None], self.claimed(host))

    def test_not_handed_over(self):
        """If Nova says nothing, Neutron decides, and the log is told once."""
        self.neutron({'number': 6})
        reader.MISSING_TOLD.clear()
        for number in range(2):
            host = self.host()
            spec = super().spec(2, instance=UUIDS[number])
            self.assertEqual(['host1'], self.passing([host], spec))
            self.assertEqual([None], self.claimed(host))
        self.assertEqual(1, self.log.output.count('Nova does not hand over'))
        self.assertEqual(
            'vSwitch ports: 3 needed, 2 of 10 free (1 host)',
            self.refused([self.host()], super().spec(3)))

    def test_full_by_others(self):
        """The ledger knows what other schedulers have placed."""
        self.ledgers(ports=1)
        self.neutron()
        self.assertEqual(
            'vSwitch ports: 2 needed, 1 of 10 free (1 host)',
            self.refused([self.host()], self.spec(2)))
        self.ledgers(rules=9)
        self.neutron(rules={'a': 5})
        self.assertEqual(
            'security-group rules: 10 needed, 9 of 100 free (1 host)',
            self.refused([self.host()], self.spec(2, ['a'])))

    def test_more_than_there_is(self):
        """A host that carries too much has nothing left, not less."""
        self.ledgers(ports=-3)
        self.neutron()
        self.assertEqual('vSwitch ports: 1 needed, 0 of 10 free (1 host)',
                         self.refused([self.host()], self.spec()))

    def test_limit_of_the_ledger_alone(self):
        """The service may keep a limit that this process does not have."""
        self.flags(vswitch_ports_per_node=0)
        self.ledgers(ports=1)
        self.neutron()
        self.assertEqual('vSwitch ports: 2 needed, 1 free (1 host)',
                         self.refused([self.host()], self.spec(2)))

    def test_another_host(self):
        """One full host does not matter where there are others."""
        self.ledgers(ports=0)
        self.neutron()
        self.assertEqual(['host2'], self.passing(
            [self.host(), self.host('host2', uuid=UUIDS[6])], self.spec()))

    def test_deleted_meanwhile(self):
        """What Neutron still shows refuses no host that has room."""
        self.ledgers(ports=1)
        self.neutron({'number': 8})
        host = self.host()
        self.assertEqual(['host1'], self.passing([host], self.spec()))
        self.assertEqual({'resources': {ledger_names.PORTS: 1}},
                         self.claimed(host)[0])
        self.assertTrue(host.allocation_candidates)

    def test_limit_too_low_for_the_guest(self):
        """A limit that was lowered holds before the ledger has it."""
        self.ledgers(ports=2)
        self.neutron()
        host = self.host(metadata={'vswitch_ports_per_node': '3'})
        self.assertEqual(
            'vSwitch ports: 2 needed, 1 of 3 free (1 host)',
            self.refused([host], self.spec(2)))

    def test_same_host(self):
        """A guest that stays is not refused, nor counted beyond the room."""
        self.ledgers(ports=1)
        self.neutron({'number': 2, 'instance': UUIDS[0]}, {'number': 6})
        host = self.host()
        self.assertEqual(['host1'], self.passing(
            [host], self.spec(2, move=True)))
        self.assertEqual([None], self.claimed(host))
        self.neutron({'number': 2, 'instance': UUIDS[0]}, {'number': 4})
        self.assertEqual(['host1'], self.passing(
            [host], self.spec(2, move=True)))
        # Placement would refuse it.
        self.assertEqual([None], self.claimed(host))
        self.assertTrue(host.allocation_candidates)
        self.ledgers()
        self.assertEqual(['host1'], self.passing(
            [host], self.spec(2, move=True)))
        self.assertEqual([{'resources': {ledger_names.PORTS: 2}}],
                         self.claimed(host))

    def test_multi_create(self):
        """What a request has placed itself its summaries do not have."""
        for shown in 0, 8:
            with self.subTest(shown=shown):
                self.recent.clear()
                self.ledgers(ports=5)
                self.neutron({'number': shown})
                host, spec = self.host(), self.spec(2)
                for index in range(2):
                    spec.instance_uuid = UUIDS[index]
                    self.assertEqual(['host1'], self.passing(
                        [host], spec, index=index))
                    self.assertTrue(host.allocation_candidates)
                    host.consume_from_request(spec)
                # As Nova looks for alternates, for the last one again.
                self.assertEqual(['host1'], self.passing(
                    [host], spec, index=1))
                spec.instance_uuid = UUIDS[2]
                self.assertEqual([], self.passing([host], spec, index=2))

    def test_placed_since(self):
        """What this process has placed since the answer is not in it."""
        self.neutron({'number': 8})  # some of which are gone
        self.ledgers(ports=3)
        late = self.spec(2)
        self.place(2)
        self.assertEqual('vSwitch ports: 2 needed, 1 of 10 free (1 host)',
                         self.refused([self.host()], late))

    def test_placed_before(self):
        """What was placed before Placement was asked counts once."""
        self.neutron({'number': 8})
        self.ledgers(ports=2)
        self.place(2)
        self.ledgers(ports=2, used=9)  # another has gone
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(2)))

    def test_placed_while_placement_was_asked(self):
        """It may be in the answer or not: what Neutron shows decides."""
        for shown, passing in ((4, ['host1']), (6, [])):
            with self.subTest(shown=shown):
                self.recent.clear()
                self.neutron({'number': shown})
                self.ledgers(ports=3)
                spec = super().spec(2)
                visit.placement_asked(spec)
                self.place(2)
                visit.placement_answered(spec, self.summaries)
                self.assertEqual(passing, self.passing(
                    [self.host()], spec, index=None))

    def test_placement_decides_what_nobody_knows(self):
        """Without figures from Neutron a host is rather tried than refused."""
        self.show(None)
        self.ledgers(ports=3)
        spec = super().spec(2)
        visit.placement_asked(spec)
        self.place(2)
        visit.placement_answered(spec, self.summaries)
        host = self.host()
        self.assertEqual(['host1'], self.passing([host], spec, PORTS))
        self.assertTrue(host.allocation_candidates)
        self.ledgers(ports=1)
        self.assertEqual('vSwitch ports: 2 needed, 1 of 10 free (1 host)',
                         self.refused([self.host()], self.spec(2), PORTS))

    def test_at_the_same_time(self):
        """Each takes its part of what the ledger has left, or is told."""
        for shown in 0, 8, None:
            with self.subTest(shown=shown):
                self.recent.clear()
                if shown is None:
                    self.show(None)
                else:
                    self.neutron({'number': shown})
                self.ledgers(ports=5)
                requests = []
                for number in range(3):
                    spec = self.spec(2, instance=UUIDS[number])
                    host = self.host()
                    self.assertEqual(['host1'], self.passing(
                        [host], spec, PORTS))
                    requests.append((host, spec))
                for host, spec in requests[:2]:
                    self.assertTrue(host.allocation_candidates)
                host, spec = requests[2]
                error = self.assertRaises(
                    exception.NoValidHost, bool, host.allocation_candidates)
                self.assertEqual(
                    'vSwitch ports: 2 needed, 1 of 10 free (1 host)',
                    error.kwargs['reason'])

    def test_claim_lost(self):
        """What Placement has refused is given back."""
        self.neutron({'number': 8})
        self.ledgers(ports=2)
        spec, host = self.spec(2), self.host()
        other = self.spec(2, instance=UUIDS[1])
        self.passing([host], spec)
        self.assertTrue(host.allocation_candidates)
        self.assertEqual([], self.passing([self.host()], other, index=None))
        turn.give_back(nfv_request.note_of(spec))
        self.assertEqual(['host1'], self.passing(
            [self.host()], other, index=None))

    def test_stale(self):
        """Without figures ports are claimed all the same."""
        self.ledgers()
        self.neutron({'number': 50}, age=1000)
        host = self.host()
        self.assertEqual(['host1'], self.passing([host], self.spec()))
        self.assertEqual([{'resources': {ledger_names.PORTS: 1}}],
                         self.claimed(host))
