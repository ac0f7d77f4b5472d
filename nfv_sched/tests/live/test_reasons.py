# SPDX-License-Identifier: Apache-2.0
"""An ordinary tenant reads why no host was found, and of which policy."""

from nfv_sched.tests.live import base


class ReasonsTest(base.LiveTestCase):

    def test_room(self):
        """What was needed, and nothing of what others have left."""
        message = self.boot_refused(self.flavor(7, **base.STRICT))
        self.assertTrue(message.endswith(
            '7 dedicated CPUs on one NUMA node needed, no host has it'),
            message)

    def test_numa_topology(self):
        message = self.boot_refused(self.flavor(
            **{base.VSWITCH: 'strict'}))
        self.assertIn(f'{base.VSWITCH}=strict', message)
        self.assertIn('hw:numa_nodes', message)

    def test_contradiction(self):
        message = self.boot_refused(self.flavor(
            **base.STRICT, **{'hw:wrs:vswitch_numa_affinity': 'prefer'}))
        self.assertIn('contradicts', message)

    def test_value_past_the_api(self):
        """Before 2.86 the API stores what it is given."""
        flavor = self.flavor()
        answer = self.set_extra_specs(
            flavor, base.pinned(**{base.VSWITCH: 'always'}), '2.85')
        self.assertEqual(200, answer.status_code, answer.text)
        self.assertIn("'always'", self.boot_refused(flavor))

    def test_ports(self):
        message = self.boot_refused(self.flavor(), networks=self.networks(9))
        self.assertIn('vNICs of a server', message)
        self.assertIn('9 needed, at most 8 allowed', message)

    def test_later_guest_of_a_request(self):
        """Nova says no more than its own sentence, and keeps nothing."""
        flavor = self.flavor(6, **base.STRICT)
        servers = self.request_many(flavor, 7)
        for server in servers:
            self.assertEqual('ERROR', self.settled(server).status)
            self.assertEqual(0, self.allocated(server.id, 'PCPU'))
        self.delete(*servers)
        self.assert_strict(self.boot(flavor))
