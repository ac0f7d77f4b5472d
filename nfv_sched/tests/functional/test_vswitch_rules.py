# SPDX-License-Identifier: Apache-2.0

"""The rules of virtual switch affinity, on the NUMA nodes of real claims.

One request at a time, for hosts that declare the switch and name their
nodes, hosts that declare only the switch, and hosts that declare nothing.
The switch is on node 1, where a guest does not go by itself.
"""

from nfv_sched.tests.functional import base
from nfv_sched.tests import outcomes

POLICY = outcomes.KEY


class Rules:
    """The table of outcomes; subclasses say what the hosts declare."""

    #: The policy that it is about.
    key = outcomes.KEY

    def setUp(self):
        super().setUp()
        self.strict = self.flavor_with(base.pinned(**{self.key: 'strict'}))
        self.prefer = self.flavor_with(base.pinned(**{self.key: 'prefer'}))

    def start_hosts(self, *names, wanted=(1,), **kwargs):
        """Start hosts with two NUMA nodes; the policy wants guests on some."""
        for name in names:
            self.start_host(name, labels=self.labels,
                            **self.declaring(wanted), **kwargs)

    def declaring(self, wanted):
        """Arguments of start_host() for such a host."""
        return {'switch': wanted}

    def fill_wanted_nodes(self, hosts):
        for host in hosts:
            self.assertEqual([[1], [1]],
                             self.occupy(self.strict, host, times=2))

    def run_table(self, wanted, hosts=('host1',), **fields):
        """Run the rows for hosts where these nodes are wanted.

        :param hosts: all that there are, or the one that is asked for
        """
        alone = hosts[0] if len(hosts) == 1 else None
        for outcome in outcomes.rows(
                self.key, wanted_nodes=len(wanted), **fields):
            with self.row(outcome.title):
                if outcome.full:
                    self.fill_wanted_nodes(hosts)
                self.run_outcome(outcome, set(wanted), alone)

    def run_outcome(self, outcome, wanted, host):
        flavor = self.flavor_with(
            base.pinned() | outcome.extra_specs(node=0))
        ends = outcome.ends[self.declares]
        if ends is outcomes.Ends.REFUSED:
            self.assertRefused(
                self.boot(flavor, host=host, expect='ERROR'),
                *self.reason(outcome))
            return
        if outcome.guest_nodes == 1 and (
                outcome.mapped_away or ends is outcomes.Ends.ANYWHERE):
            # The first of two guests goes to node 0 by itself.
            first = self.boot(flavor, host='host1')
            server = self.boot(flavor, host='host1')
            self.assertPlaced(first, [0])
        else:
            server = self.boot(flavor, host=host)
        nodes = self.nodes(server)
        self.assertPlaced(server, nodes)
        self.assertEqual(outcome.guest_nodes, len(set(nodes)))
        if ends is outcomes.Ends.WITH:
            self.assertLessEqual(set(nodes), wanted)
        elif ends is outcomes.Ends.AWAY:
            self.assertEqual(set(), set(nodes) & wanted)
        elif outcome.guest_nodes == 1:
            self.assertEqual([1], nodes)

    def reason(self, outcome):
        strict = f'{self.key}=strict'
        if self.declares is outcomes.Declares.ALL:
            return [strict, outcome.reason.format(node=0)]
        if outcome.mapped_away and (
                outcome.policy == 'prefer' or
                self.declares is outcomes.Declares.SWITCH):
            return [outcomes.MAPPING]
        return [strict]


class AllLabels:
    """Hosts that declare the switch or the place and name their nodes."""

    labels = base.ALL_LABELS
    declares = outcomes.Declares.ALL

    def test_prefer_looks_for_room_in_the_whole_cloud(self):
        """The host that Nova likes best has no room where it is wanted."""
        self.start_hosts('host1', memory_gib=64)
        self.start_hosts('host2', memory_gib=8)
        self.fill_wanted_nodes(['host1'])
        self.assertPlaced(self.boot(self.prefer), [1], 'host2')
        self.assertPlaced(self.boot(self.prefer), [1], 'host2')
        self.assertPlaced(self.boot(self.prefer), [0], 'host1')


class AllLabelsTest(AllLabels, Rules, base.NFVCloudTestCase):

    def test_outcomes(self):
        self.start_hosts('host1', 'host2', wanted=[1])
        self.run_table([1], ('host1', 'host2'))

        with self.row('strict, shared CPUs: node 1'):
            flavor = self.flavor(nfv__vswitch_numa_affinity='strict',
                                 hw__cpu_policy='shared', vcpus=1)
            self.assertPlaced(self.boot(flavor), [1])

        with self.row('prefer, two guest nodes: runs'):
            flavor = self.flavor(nfv__vswitch_numa_affinity='prefer',
                                 hw__numa_nodes='2')
            server = self.boot(flavor)
            self.assertEqual([0, 1], sorted(self.nodes(server)))

        with self.row('no policy: as stock Nova'):
            flavor = self.flavor()
            self.assertPlaced(self.boot(flavor, host='host1'), [0])
            self.assertPlaced(self.boot(flavor, host='host1'), [1])

        self.start_hosts('host3', wanted=[0, 1])
        self.run_table([0, 1], ('host3',))

        with self.row('strict, two guest nodes the other way round'):
            # By itself the claim takes the node that fits first, which is
            # node 0 for guest node 0; labels cannot tell two guest nodes
            # apart, so the guest runs as mapped or not at all.
            flavor = self.flavor(
                nfv__vswitch_numa_affinity='strict', hw__numa_nodes='2',
                nfv__numa_node_0='1', nfv__numa_node_1='0',
                hw__numa_cpus_0='0', hw__numa_cpus_1='1,2',
                hw__numa_mem_0='128', hw__numa_mem_1='128', vcpus=3)
            server = self.boot(flavor, host='host3',
                               expect=('ACTIVE', 'ERROR'))
            if server['status'] == 'ACTIVE':
                self.assertPlaced(server, [1, 0])
            else:
                self.assertRefused(server, 'nfv:')

        with self.row('strict, mapped to node 1'):
            flavor = self.flavor(nfv__vswitch_numa_affinity='strict',
                                 nfv__numa_node_0='1')
            for _ in range(2):
                self.assertPlaced(self.boot(flavor, host='host3'), [1])
            self.assertRefused(
                self.boot(flavor, host='host3', expect='ERROR'))

    def test_hosts_that_differ(self):
        """The switch is on node 1 of one host and on node 0 of another."""
        self.start_hosts('host1', wanted=[1], memory_gib=64)
        self.start_hosts('host2', wanted=[0], memory_gib=8)
        # Node 0 is the busier one, so that nobody goes there by himself.
        self.assertEqual([[0]], self.occupy(self.flavor(), 'host2'))
        self.assertPlaced(self.boot(self.strict), [1], 'host1')
        self.assertPlaced(self.boot(self.strict), [1], 'host1')
        self.assertPlaced(self.boot(self.strict), [0], 'host2')
        self.assertRefused(self.boot(self.strict, expect='ERROR'),
                           POLICY, 'strict')
        self.assertPlaced(self.boot(self.prefer), [0], 'host1')


class SwitchLabelTest(Rules, base.NFVCloudTestCase):
    """Hosts that declare the switch but do not name their nodes."""

    labels = base.SWITCH_LABEL
    declares = outcomes.Declares.SWITCH

    def test_outcomes(self):
        self.start_hosts('host1', 'host2', wanted=[1])
        # The claim on the compute node cannot be told the node of a mapping.
        self.run_table([1], ('host1', 'host2'))

        with self.row('mapped to node 0 without a policy: refused'):
            flavor = self.flavor(nfv__numa_node_0='0')
            self.assertRefused(self.boot(flavor, expect='ERROR'),
                               'nfv:numa_node')

        self.start_hosts('host3', wanted=[0, 1])
        self.run_table([0, 1], ('host3',))


class NoLabels:
    """Hosts that say nothing about the switch or the place."""

    labels = base.NO_LABELS
    declares = outcomes.Declares.NOTHING

    def test_outcomes(self):
        self.start_hosts('host1')
        # No node is known to have it, so none can be filled.
        self.run_table([1], full=False)
        self.run_table([0, 1], full=False)


class NoLabelsTest(NoLabels, Rules, base.NFVCloudTestCase):

    def test_outcomes(self):
        super().test_outcomes()
        # The other is no place for a strict guest, though Nova likes it
        # better.
        self.start_host('host2', switch=[1], memory_gib=8)
        with self.row('one host declares its switch'):
            self.assertPlaced(self.boot(self.strict), [1], 'host2')
