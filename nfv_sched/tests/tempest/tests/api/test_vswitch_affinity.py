# SPDX-License-Identifier: Apache-2.0
"""Guests that want the NUMA node of the virtual switch."""

from tempest.lib import decorators

from nfv_sched.tests import outcomes
from nfv_sched.tests.tempest.tests.api import base

AFFINITY = outcomes.KEY
SYNONYM = 'hw:wrs:vswitch_numa_affinity'


class VSwitchAffinityTest(base.NFVSchedTest):
    """Outcomes of strict and prefer, with the node read by an admin."""

    needed_filters = ('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter')

    def flavor(self, nodes=1, **extra_specs):
        return self.create_flavor(
            *base.pinned(vcpus=2 * nodes, nodes=nodes, **extra_specs))

    @decorators.attr(type='smoke')
    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a001')
    def test_strict(self):
        flavor = self.flavor(**{AFFINITY: 'strict'})
        self.assert_with_vswitch(self.boot(flavor))

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a002')
    def test_strict_on_every_host(self):
        """The switch of each host is on other nodes."""
        self._check(policy='strict', guest_nodes=1, mapped_away=False)

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a003')
    def test_prefer_on_every_host(self):
        """Where there is room, prefer ends like strict."""
        self._check(policy='prefer', guest_nodes=1, mapped_away=False)

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a004')
    def test_carrier_grade_spelling(self):
        flavor = self.flavor(**{SYNONYM: 'strict'})
        self.assert_with_vswitch(self.boot(flavor))

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a005')
    def test_dedicated_cpus(self):
        """The CPUs are pinned, and different ones."""
        self.require_options('dedicated_cpus')
        server = self.boot(self.flavor(**{AFFINITY: 'strict'}))
        self.assert_with_vswitch(server)
        pins = self.guest_nodes(server)[0]['cpu_pinning']
        self.assertEqual({'0', '1'}, set(pins))
        self.assertEqual(2, len(set(pins.values())))

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a006')
    def test_strict_two_nodes_with_two_switch_nodes(self):
        self._check(policy='strict', guest_nodes=2, wanted_nodes=2)

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a007')
    def test_strict_two_nodes_with_one_switch_node(self):
        self._check(policy='strict', guest_nodes=2, wanted_nodes=1)

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a008')
    def test_strict_mapped_to_the_switch(self):
        self.require_options('node_labels')
        host = self.host_where(self.vswitch_nodes, 'a virtual switch')
        node = min(self.vswitch_nodes(host))
        server = self.boot_on(host, self.flavor(
            **{AFFINITY: 'strict', 'nfv:numa_node.0': str(node)}))
        self.assertEqual([node], self.host_nodes(server))

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a009')
    def test_strict_mapped_away_from_the_switch(self):
        self.require_options('node_labels')
        self._check(policy='strict', mapped_away=True)

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a010')
    def test_prefer_mapped_away_from_the_switch(self):
        """The mapping is kept, the preference cannot be."""
        self.require_options('node_labels')
        self._check(policy='prefer', mapped_away=True)
        self._check(policy='prefer', mapped_away=True,
                    synonyms={outcomes.MAPPING: 'hw:numa_node.0'})

    def _check(self, synonyms=None, **fields):
        """Run a row of the table of outcomes, on each host that it is about.

        :param synonyms: other names of keys
        :param fields: of the row, see outcomes.rows()
        """
        outcome, = outcomes.rows(full=False, **fields)
        self.host_where(
            lambda host: self._suits(outcome, host),
            f'what this is about: {outcome.title}')
        for host in self.hosts:
            if self._suits(outcome, host):
                self._check_on(host, outcome, synonyms or {})

    def _suits(self, outcome, host):
        return outcome.suits(self.vswitch_nodes(host), self.numa_nodes(host))

    def _check_on(self, host, outcome, synonyms):
        node = min(self.other_nodes(host), default=None)
        flavor = self.flavor(outcome.guest_nodes, **{
            synonyms.get(key, key): value
            for key, value in outcome.extra_specs(node).items()})
        ends = outcome.ends[outcomes.Declares.ALL]
        if ends is outcomes.Ends.REFUSED:
            message = self.boot_refused_on(host, flavor)
            self.assert_reason(message, f'{AFFINITY}={outcome.policy}',
                               outcome.reason.format(node=node))
            return
        server = self.boot_on(host, flavor)
        self.assertEqual(host, self.host_of(server))
        nodes = self.host_nodes(server)
        self.assertEqual(outcome.guest_nodes, len(set(nodes)))
        if ends is outcomes.Ends.WITH:
            self.assert_with_vswitch(server)
        else:
            self.assertEqual([node], nodes)
        # There may be room for one only.
        self.delete_server(server)
