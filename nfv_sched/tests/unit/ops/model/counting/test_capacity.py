# SPDX-License-Identifier: Apache-2.0

"""Equality with Nova is in the equivalence tests; here is what is told."""

import dataclasses

import fixtures
from oslo_utils import fixture as utils_fixture
from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.limits import names
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.counting import document
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.simulator import placement
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops import small_clouds

Kind = document.BindingKind
PCPU = (Kind.RESOURCE_CLASS, 'PCPU')
STRICT = (Kind.POLICY, 'nfv:vswitch_numa_affinity=strict')
COUNTING = (Kind.FILTER, 'NumInstancesFilter')


def in_placement(filters, host):
    """A cloud of a host whose PCI devices are in Placement."""
    cloud = small_clouds.cloud(
        dataclasses.replace(host, providers=()), filter_scheduler={
            'enabled_filters': list(filters), 'pci_in_placement': True})
    cloud.options['pci']['report_in_placement'] = True
    return cloud


class CapacityTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger('nova'))

    def count(self, cloud, flavor=None, empty=False, **kwargs):
        found, = capacity.capacities(
            cloud, [flavor or small_clouds.flavor()],
            capacity.NewServers(**kwargs), empty=empty)
        return found

    def assertBinds(self, kinds, found):
        """Assert what alone binds on host one; return the first text."""
        limits = found.hosts['one'].limits
        self.assertEqual(kinds, small_clouds.kinds_of(limits))
        self.assertEqual({True}, {each.alone for each in limits})
        return limits[0].why


class TestCounts(CapacityTestCase):
    NIC = small_clouds.flavor(pci_passthrough__alias='nic:1')

    def two_cards(self, near, *filters):
        """A VF of each of two cards in Placement; node 1 has free CPUs.

        :param near: NUMA node of the first; the other is on the other node
        """
        return in_placement(filters, small_clouds.host(
            'one', small_clouds.node(0, range(8)), small_clouds.node(1),
            devices=tuple([
                small_clouds.device(number, node,
                                    parent=f'0000:{number:02x}:00.0')
                for number, node in ((1, near), (2, 1 - near))])))

    def test_more_than_placement_knows(self):
        """Guests that are granted VCPU, as too much PCPU is allocated."""
        found = self.count(small_clouds.cloud(small_clouds.stocked(
            small_clouds.host(),
            PCPU=snapshot.Inventory(total=16, max_unit=16, used=12),
            VCPU=snapshot.Inventory(total=16, max_unit=16))))
        self.assertEqual((4, 4), (found.fits, found.placement))

    def test_request_filters_of_nova(self):
        """They ask for the image, which a flavor alone has not."""
        cloud = small_clouds.cloud(small_clouds.host(), scheduler={
            'query_placement_for_image_type_support': True,
            'query_placement_for_routed_network_aggregates': True,
            'image_metadata_prefilter': True})
        self.assertEqual(4, self.count(cloud).fits)

    def test_long_work(self):
        """Services have not gone silent since their hosts were read."""
        time = self.useFixture(utils_fixture.TimeFixture())
        found = capacity.capacities(
            small_clouds.cloud(small_clouds.host(), filters=['ComputeFilter']),
            [small_clouds.flavor()] * 2,
            update=lambda done, total: time.advance_time_seconds(3600))
        self.assertEqual([4, 4], [each.fits for each in found])

    def test_nothing_is_changed(self):
        cloud = small_clouds.cloud(small_clouds.host())
        one, other = capacity.capacities(cloud, [small_clouds.flavor()] * 2)
        self.assertEqual(one, other)
        self.assertEqual(cloud, small_clouds.cloud(small_clouds.host()))

    def test_shared_vcpus_per_core(self):
        """A limit of 0 is none, so CPUs for pinned guests end the count."""
        host = small_clouds.stocked(
            small_clouds.host('one', dataclasses.replace(
                small_clouds.node(0), shared=frozenset((0, 1)),
                dedicated=frozenset(range(2, 8)))),
            VCPU=snapshot.Inventory(total=2, ratio=4.0, max_unit=2))
        flavor = small_clouds.flavor(
            2, hw__cpu_policy='mixed', hw__cpu_dedicated_mask='^0',
            nfv__shared_vcpu='0')
        for most, fits in ((2.0, 2), (3.5, 3), (0.0, 6)):
            found = self.count(small_clouds.cloud(host, nfv_sched={
                'shared_vcpus_per_core': most}), flavor)
            self.assertEqual(fits, found.fits, most)

    def test_devices_in_placement(self):
        """Whatever was counted before, they come in the same order.

        With no filter that knows NUMA nodes the claim fails if Placement
        offers first a device that is near none of the free CPUs.
        """
        found = capacity.capacities(
            self.two_cards(1, 'PciPassthroughFilter'), [self.NIC] * 8)
        self.assertEqual([1] * 8, [each.fits for each in found])

    def test_nova_drops_candidates(self):
        """Its own filter of NUMA nodes does, whichever Placement offers."""
        for near in (0, 1):
            self.assertEqual(1, self.count(self.two_cards(
                near, 'PciPassthroughFilter', 'NUMATopologyFilter'),
                self.NIC).fits, near)


class TestBinding(CapacityTestCase):

    def test_ports(self):
        cloud = small_clouds.limited(5)
        found = self.count(cloud)
        self.assertEqual((2, 4), (found.fits, found.placement))
        self.assertEqual('1 vSwitch ports needed, 0 of 8 left',
                         self.assertBinds([Kind.PORTS], found))
        self.assertEqual(1, self.count(cloud, ports=2).fits)
        self.assertEqual(4, self.count(cloud, ports=0).fits)

    def test_ports_in_ledger(self):
        """Allocated ports count once, and the servers are not looked at."""
        host = small_clouds.host(network=snapshot.HostNetwork(
            vswitch_ports=4, security_rules=0))
        ledger = snapshot.Provider(
            uuid=names.provider_uuid(host.uuid), name='ledger',
            parent=host.uuid, traits=frozenset((names.TRAIT,)), inventories={
                names.PORTS: snapshot.Inventory(
                    total=8, reserved=2, used=3, max_unit=8),
                names.RULES: snapshot.Inventory(total=names.UNLIMITED)})
        options = {'nfv_sched': {
            'ledger': 'placement', 'vswitch_ports_per_node': 8,
            'vswitch_physical_ports': 1}}
        server = snapshot.Server(
            uuid='x', name='x', host='one', flavor=small_clouds.flavor(),
            ports=(snapshot.Port(id='p'),) * 3)
        cloud = small_clouds.cloud(dataclasses.replace(
            host, providers=(*host.providers, ledger)), servers=(server,),
            **options)
        self.assertEqual(3, self.count(cloud, ports=1).fits)
        with self.subTest('one port is not of the server, one physical'):
            found = self.count(cloud, empty=True, ports=2)
            self.assertEqual(3, found.fits)
        with self.subTest('no ledger yet'):
            self.assertEqual(3, self.count(small_clouds.cloud(
                host, servers=(server,), **options), ports=1).fits)


class TestLostServers(CapacityTestCase):
    """What lifting a limit alone gives back is lost to this limit."""

    def lost(self, cloud):
        found = self.count(cloud, small_clouds.flavor(
            nfv__vswitch_numa_affinity='strict'))
        self.assertEqual(found.placement - found.fits,
                         sum(each.servers for each in found.lost))
        return small_clouds.losses_of(found)

    def test_ports(self):
        """The policy takes two of four, the limit one of these."""
        self.assertEqual(
            {Kind.PORTS: 1, ('and', Kind.PORTS, STRICT): 2},
            self.lost(small_clouds.limited(6)))

    def test_filter_that_counts_guests(self):
        """It takes three, which are more than the policy leaves."""
        for most, lost in (
                (3, {STRICT: 1, ('and', COUNTING, STRICT): 1}),
                (1, {COUNTING: 1, ('and', COUNTING, STRICT): 2})):
            self.assertEqual(lost, self.lost(small_clouds.crowded(most)), most)


class TestOddRecords(CapacityTestCase):
    """What cannot be read ends the count there, not of others."""

    def counts(self, *hosts):
        found = self.count(small_clouds.cloud(*hosts))
        return {name: host.fits for name, host in found.hosts.items()}

    def test_flavors_that_nova_refuses(self):
        """Also those that only its scheduler looks at."""
        refused = [
            small_clouds.flavor(**specs) for specs in (
                {'hw__numa_nodes': 'zero'},
                {'hw__cpu_policy': 'shared',
                 'hw__cpu_thread_policy': 'require'},
                {'hw__cpu_policy': 'mixed'},
                {'pci_passthrough__alias': 'nothing:1'},
                {'hw__tpm_version': '9'}, {'os__secure_boot': 'maybe'},
                {'hw__maxphysaddr_mode': 'x'})]
        found = capacity.capacities(
            small_clouds.cloud(small_clouds.host()),
            [*refused, small_clouds.flavor()])
        self.assertEqual([0] * len(refused) + [4],
                         [each.fits for each in found])
        self.assertEqual([True] * len(refused) + [False],
                         [bool(each.error) for each in found])

    def test_flavors_that_contradict_themselves(self):
        found = self.count(small_clouds.cloud(small_clouds.host()),
                           small_clouds.flavor(
            nfv__shared_vcpu='77', hw__cpu_policy='mixed',
            hw__cpu_dedicated_mask='^0'))
        self.assertEqual(0, found.fits)
        self.assertEqual(Kind.FLAVOR, found.hosts['one'].limits[-1].kind)

    def test_no_numa_nodes(self):
        for nodes in (None, ()):
            found = self.count(small_clouds.cloud(dataclasses.replace(
                small_clouds.host(), nodes=nodes), small_clouds.host('two')))
            self.assertEqual((4, ['two']), (found.fits, [
                name for name, host in found.hosts.items() if host.fits]))
            self.assertBinds([Kind.TOPOLOGY], found)

    def test_numa_nodes_that_cannot_be_read(self):
        odd = dataclasses.replace(small_clouds.host(), nodes=(
            dataclasses.replace(small_clouds.node(0), pages=(
                snapshot.Pages(size=0, total=5),)),))
        found = self.count(small_clouds.cloud(odd, small_clouds.host('two')))
        self.assertEqual(4, found.fits)
        self.assertIn('none that can be read',
                      self.assertBinds([Kind.TOPOLOGY], found))

    def test_placement_unread(self):
        """What it has is worked out; else an unknown host gets nothing."""
        host = dataclasses.replace(small_clouds.host(), providers=())
        self.assertEqual({'one': 4}, self.counts(host))
        self.assertEqual({'one': 0, 'two': 4},
                         self.counts(host, small_clouds.host('two')))

    def test_servers_where_placement_was_not_read(self):
        """They have allocated what their flavors say."""
        host = dataclasses.replace(small_clouds.host(), providers=())
        flavor = small_clouds.flavor(memory=60000)
        server = snapshot.Server(
            uuid=uuids.server, name='x', host='one', flavor=flavor)
        cloud = small_clouds.cloud(host, servers=(server,), flavors=(flavor,))
        found = self.count(cloud)
        self.assertEqual((2, 2), (found.fits, found.placement))
        self.assertEqual(4, self.count(cloud, empty=True).fits)

    def test_a_vf_without_parent(self):
        """Nova cannot put it into Placement."""
        cloud = in_placement(small_clouds.FILTERS, small_clouds.host(
            'one', devices=(small_clouds.device(1, 1),)))
        self.assertEqual(4, self.count(cloud).fits)
        self.assertEqual(0, self.count(cloud, small_clouds.flavor(
            pci_passthrough__alias='nic:1')).fits)

    def test_records_that_nova_cannot_have(self):
        device = dataclasses.replace(small_clouds.device(1, 1), kind='what')
        provider = small_clouds.host().providers[0]
        provider = dataclasses.replace(provider, inventories={
            'PCPU': snapshot.Inventory(total=16, step_size=0)})
        for fields, text in (
                ({'stats': {'num_instances': 'x'}},
                 "num_instances of its stats is not a number: 'x'"),
                ({'supported': (('x86_64', 'kvm'),)},
                 'supported_instances: not architecture, hypervisor type and '
                 'VM mode: x86_64, kvm'),
                ({'devices': (device,)},
                 "PCI device 0000:01:02.0: 'what' is not known"),
                ({'devices': (small_clouds.device(1, 1, status='lent'),)},
                 "PCI device 0000:01:02.0: 'lent' is not known"),
                ({'providers': (provider,)}, 'PCPU in steps of 0')):
            error = self.assertRaises(
                problems.InputError, self.count, small_clouds.cloud(
                    dataclasses.replace(small_clouds.host(), **fields)))
            self.assertEqual(f'host one: {text}', str(error))


class TestUnknownNames(CapacityTestCase):
    """Placement refuses a request with a name that it does not know."""

    def cloud(self, **names):
        return dataclasses.replace(small_clouds.cloud(small_clouds.host(
            'one', traits=('CUSTOM_SLOW',))), **names)

    def test_trait(self):
        known = self.cloud(traits=frozenset({'CUSTOM_SLOW', 'CUSTOM_NONE'}))
        for name, value, fits, unknown in (
                ('CUSTOM_NOWHERE', 'forbidden', 0, True),
                ('CUSTOM_NOWHERE', 'required', 0, True),
                ('HW_CPU_X86_AVX512FF', 'forbidden', 0, True),
                ('CUSTOM_NONE', 'forbidden', 4, False),
                ('CUSTOM_NONE', 'required', 0, False),
                ('CUSTOM_SLOW', 'required', 4, False)):
            found = self.count(known, small_clouds.flavor(
                **{f'trait__{name}': value}))
            self.assertEqual(
                (fits, (placement.Unknown('trait', name),)
                 if unknown else (), ()),
                (found.fits, found.unknown, found.unverified), (name, value))
            if unknown:
                self.assertBinds([(Kind.UNKNOWN_NAME, 'trait')], found)

    def test_names_were_not_read(self):
        """As in an older snapshot: that is not certain."""
        for name, unverified in (('CUSTOM_NOWHERE', True),
                                 ('HW_CPU_X86_AVX2', False)):
            found = self.count(self.cloud(), small_clouds.flavor(
                **{f'trait__{name}': 'forbidden'}))
            self.assertEqual(
                (4, (), (placement.Unknown('trait', name),)
                 if unverified else ()),
                (found.fits, found.unknown, found.unverified))


class TestLimitingFilter(CapacityTestCase):

    def test_filter_and_resource_end_together(self):
        for most, kinds, alone in (
                (4, [COUNTING, Kind.CPUS], False),
                (3, [COUNTING], True),
                (5, [Kind.CPUS], True)):
            host = self.count(small_clouds.crowded(most)).hosts['one']
            self.assertEqual(min(most, 4), host.fits)
            found = [each for each in host.limits
                     if each.kind is not Kind.RESOURCE_CLASS]
            self.assertEqual((kinds, {alone}), (
                small_clouds.kinds_of(found),
                {each.alone for each in host.limits} if most != 5
                else {alone}))

    def test_thread_policy_alone(self):
        """Placement is asked for a trait only because of the policy."""
        trait = 'HW_CPU_HYPERTHREADING'
        plain = small_clouds.host('one', small_clouds.node(0, threads=1),
                                  small_clouds.node(1, threads=1))
        full = small_clouds.host('one', *(
            small_clouds.node(number, range(8), threads=1)
            for number in (0, 1)))
        for host, specs, kinds, alone in (
                (plain, {'hw__cpu_thread_policy': 'require'},
                 [Kind.THREADS], True),
                # It has threads, and Placement does not know.
                (small_clouds.host('one'),
                 {'hw__cpu_thread_policy': 'require'},
                 [Kind.THREADS], True),
                (full, {'hw__cpu_thread_policy': 'require'},
                 [PCPU, Kind.THREADS, Kind.TOO_SMALL],
                 False),
                # Nova takes it for the policy.
                (plain, {f'trait__{trait}': 'required'},
                 [Kind.THREADS], True)):
            binding = self.count(small_clouds.cloud(host, workarounds={
                'disable_fallback_pcpu_query': True}),
                small_clouds.flavor(**specs)).hosts['one'].limits
            self.assertEqual((kinds, {alone}), (
                small_clouds.kinds_of(binding),
                {each.alone for each in binding}))


class TestEmpty(CapacityTestCase):

    def test_as_if_no_server_were_there(self):
        host = small_clouds.host(
            'one', small_clouds.node(0, range(8), huge=16),
            small_clouds.node(1, (0,)),
            devices=(small_clouds.device(1, 1, status='allocated', server='x'),
                     small_clouds.device(2, 1, status='removed')),
            network=snapshot.HostNetwork(vswitch_ports=9, security_rules=9))
        server = snapshot.Server(
            uuid='x', name='x', host='one', flavor=small_clouds.flavor(),
            ports=(snapshot.Port(id='p', rules=3),
                   snapshot.Port(id='q', vnic_type='direct', rules=3)))
        cloud = small_clouds.cloud(host, servers=(server,))
        flavor = small_clouds.flavor(hw__mem_page_size='1GB',
                                     pci_passthrough__alias='nic:1')
        self.assertEqual(0, self.count(cloud, flavor, ports=1).fits)
        self.assertEqual(
            1, self.count(cloud, flavor, empty=True, ports=1).fits)
        with self.subTest('a VF of the port beside that of the alias'):
            self.assertEqual(0, self.count(cloud, flavor, empty=True).fits)


class TestShadow(CapacityTestCase):
    """Filters in shadow do not count."""

    def fits(self, shadow, ports=0, **options):
        cloud = small_clouds.cloud(
            small_clouds.host('one', network=snapshot.HostNetwork(
                vswitch_ports=7, security_rules=0)),
            nfv_sched={'shadow': shadow, **options})
        return self.count(cloud, small_clouds.flavor(
            nfv__vswitch_numa_affinity='strict'), ports=ports).fits

    def test_policies(self):
        numa = [name for name in small_clouds.FILTERS if 'NUMA' in name
                or name in ('NFVTopologyFilter', 'SharedVCPUFilter',
                            'CPUThreadPolicyFilter')]
        self.assertEqual([2, 4, 4], [self.fits(shadow) for shadow in (
            [], ['VSwitchNUMAAffinityFilter'], numa)])

    def test_networks(self):
        """The filter of the thread policy hands no limits to the claim."""
        host = small_clouds.host(
            'one', small_clouds.near(small_clouds.node(0), 'data'),
            small_clouds.node(1), traits=['HW_CPU_HYPERTHREADING'])
        for shadow, fits in (([], 2), (['NFVTopologyFilter'], 4)):
            cloud = small_clouds.cloud(host, nfv_sched={'shadow': shadow})
            self.assertEqual(fits, self.count(
                cloud, small_clouds.flavor(hw__cpu_thread_policy='require'),
                ports=assumed_ports.of_networks(
                    cloud, ['net-data,physnet=data'])).fits)

    def test_limits(self):
        limit = {'vswitch_ports_per_node': 8, 'vswitch_physical_ports': 0}
        self.assertEqual([1, 2], [self.fits(shadow, 1, **limit) for shadow in (
            [], ['VSwitchPortLimitFilter'])])


class TestProject(CapacityTestCase):
    ISOLATION = 'AggregateMultiTenancyIsolation'
    AGGREGATES = (
        snapshot.Aggregate(name='a', uuid=uuids.a, hosts=('one',), metadata={
            'filter_tenant_id': 'alpha'}),
        snapshot.Aggregate(name='b', uuid=uuids.b, hosts=('two',), metadata={
            'filter_tenant_id_1': 'beta', 'filter_tenant_id_2': 'alpha'}))

    def cloud(self, filters=small_clouds.FILTERS, **options):
        """Host one is for alpha, two for alpha and beta, six for anybody."""
        return small_clouds.cloud(
            self.host('one', uuids.a), self.host('two', uuids.b),
            small_clouds.host('six'), filters=filters,
            aggregates=self.AGGREGATES,
            scheduler=options)

    def host(self, name, aggregate):
        """A host that Placement, too, knows to be in an aggregate."""
        host = small_clouds.host(name)
        return dataclasses.replace(host, providers=(dataclasses.replace(
            host.providers[0], aggregates=frozenset({aggregate})),))

    def assertTakes(self, names, cloud, project):
        found = self.count(cloud, project=project)
        self.assertEqual(names, {name for name, host in found.hosts.items()
                                 if host.fits == 4})
        self.assertEqual(4 * len(names), found.fits)
        return found

    def test_isolation(self):
        # Nova 29 has no keys with a suffix here.
        both = dataclasses.replace(self.AGGREGATES[1], metadata={
            'filter_tenant_id': 'beta,alpha'})
        cloud = dataclasses.replace(
            self.cloud((*small_clouds.FILTERS, self.ISOLATION)),
            aggregates=(self.AGGREGATES[0], both))
        self.assertTakes({'one', 'two', 'six'}, cloud, 'alpha')
        found = self.assertTakes({'two', 'six'}, cloud, 'beta')
        self.assertEqual('AggregateMultiTenancyIsolation refuses the host',
                         self.assertBinds(
                             [(Kind.FILTER, self.ISOLATION)], found))
        self.assertEqual({(Kind.FILTER, self.ISOLATION): 4},
                         small_clouds.losses_of(found))
        for project in (None, 'gamma'):
            self.assertTakes({'six'}, cloud, project)

    def test_aggregates_in_placement(self):
        """Unlike the filter: a project with aggregates gets only these."""
        cloud = self.cloud(limit_tenants_to_placement_aggregate=True)
        self.assertTakes({'one', 'two'}, cloud, 'alpha')
        found = self.assertTakes({'two'}, cloud, 'beta')
        self.assertEqual(4, found.placement)
        self.assertEqual('not in the aggregates asked for',
                         self.assertBinds([Kind.AGGREGATE], found))
        for project in (None, 'gamma'):
            self.assertTakes({'one', 'two', 'six'}, cloud, project)

    def test_aggregates_that_a_project_must_have(self):
        cloud = self.cloud(limit_tenants_to_placement_aggregate=True,
                           placement_aggregate_required_for_tenants=True)
        self.assertTakes({'two'}, cloud, 'beta')
        found = self.assertTakes(set(), cloud, 'gamma')
        self.assertIn('placement_aggregate_required_for_tenants', found.error)
        self.assertBinds([Kind.AGGREGATE], found)
        # Of nobody in particular is asked what the hosts have room for.
        self.assertTakes({'one', 'two', 'six'}, cloud, None)
