# SPDX-License-Identifier: Apache-2.0
"""Where strict and prefer guests run, on hosts of unlike shape."""

from nfv_sched.tests.live import base
from nfv_sched.tests import outcomes

PREFER = base.pinned(**{base.VSWITCH: 'prefer'})

#: Dedicated CPUs of a NUMA node.
NODE = 6


class OutcomesTest(base.LiveTestCase):
    """The table of outcomes, on each host of the bed that a row is about."""

    def test_outcomes(self):
        self.run_outcomes(
            outcomes.rows(full=False),
            {host: self.switch_nodes(host) for host in self.hosts})

    def test_carrier_grade_spelling(self):
        flavor = self.flavor(**base.pinned(
            **{'hw:wrs:vswitch_numa_affinity': 'strict'}))
        self.assert_strict(self.boot(flavor, host=base.RIGHT))


class FullTest(base.LiveTestCase):
    """The switch nodes of all hosts are full."""

    def test_full_switch_nodes(self):
        """As many strict guests as fit; the next is refused, prefer goes on.

        There are six NUMA nodes with a switch, and each holds one guest.
        """
        whole = self.flavor(NODE, **base.STRICT)
        # One after the other: who loses a race for a NUMA node may run out
        # of attempts while another has room.
        servers = [self.boot(whole) for _ in range(6)]
        for server in servers:
            self.assert_strict(server)
        message = self.boot_refused(self.flavor(1, **base.STRICT))
        self.assertIn(f'{base.VSWITCH}=strict', message)
        self.assertIn('1 dedicated CPU', message)
        self.assertTrue(message.endswith('needed, no host has it'), message)

        server = self.boot(self.flavor(1, **PREFER))
        self.assertNotIn(
            self.host_nodes(server)[0],
            self.switch_nodes(server.compute_host))

        self.delete(servers[2])
        self.assert_strict(self.boot(self.flavor(1, **base.STRICT)))

    def test_prefer_takes_the_last_switch_node(self):
        """Over the whole cloud: the one host with room wins."""
        whole = self.flavor(NODE, **base.STRICT)
        for host in (base.LEFT, base.BOTH, base.BOTH, base.QUAD, base.QUAD):
            self.boot(whole, host=host)
        server = self.boot(self.flavor(**PREFER))
        self.assertEqual(base.RIGHT, server.compute_host)
        self.assert_strict(server)

    def test_multi_create(self):
        """Guests of one request are placed one by one, all strictly."""
        flavor = self.flavor(NODE, **base.STRICT)
        for server in self.request_many(flavor, 6):
            self.assertEqual('ACTIVE', self.settled(server).status)
            self.assert_strict(server)
