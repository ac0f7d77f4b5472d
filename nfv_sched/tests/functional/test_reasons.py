# SPDX-License-Identifier: Apache-2.0

"""What tenants read when no host will do.

The fault of a server in error is the only place where most tenants look.
"""

import contextlib

from nfv_sched.tests.functional import base

POLICY = 'nfv:vswitch_numa_affinity'
PLAIN = 'No valid host was found. '


class ReasonsTest(base.NFVCloudTestCase):

    def setUp(self):
        super().setUp()
        self.strict = self.flavor(nfv__vswitch_numa_affinity='strict')

    def fill(self, *hosts):
        for host in hosts:
            self.occupy(self.strict, host, times=2)

    def refused(self, flavor=None):
        server = self.boot(flavor or self.strict, expect='ERROR')
        self.assertEqual({}, self._get_allocations_by_server_uuid(
            server['id']))
        return self.fault(server)

    def test_what_the_owner_reads(self):
        for name in ('alpha', 'beta'):
            self.start_host(name, switch=[1])

        with self.row('the summary names policy, need and have'):
            self.fill('alpha', 'beta')
            message = self.refused()
            self.assertTrue(message.startswith(PLAIN), message)
            self.assertIn(POLICY + '=strict', message)
            # The need is two pinned CPUs on one node, the have is none.
            self.assertRegex(message, r'\b2\b')
            self.assertRegex(message, r'\b0\b')
            self.assertNotIn('alpha', message)
            self.assertNotIn('beta', message)

            with self.default_exposed():
                message = self.refused()
            self.assertEqual(
                f'{PLAIN}{POLICY}=strict: 2 dedicated CPUs on one NUMA node '
                'with the virtual switch needed, no host has it', message)

        with self.row('the key that the flavor lacks'):
            flavor = self.flavor_with({POLICY: 'strict'})
            message = self.refused(flavor)
            self.assertIn('hw:numa_nodes', message)
            self.assertIn(POLICY, message)
            with self.default_exposed():
                message = self.refused(flavor)
            self.assertTrue(message.endswith('set hw:numa_nodes'), message)

        with self.row('no policy and no room: as Nova refuses it'):
            message = self.refused(self.flavor(vcpus=5))
            self.assertTrue(message.startswith(PLAIN), message)
            self.assertNotIn('nfv:', message)
            self.assertNotIn('alpha', message)

        with self.row('nothing is left that hinders the next guest'):
            self.refused(self.flavor(nfv__vswitch_numa_affinity='strict',
                                     nfv__numa_node_0='0'))
            self.assertPlaced(self.boot(self.strict), [1])

    @contextlib.contextmanager
    def default_exposed(self):
        """Let tenants read for a while what they do by default."""
        base.CONF.clear_override('expose_reasons', group='nfv_sched')
        try:
            yield
        finally:
            self.flags(expose_reasons='summary', group='nfv_sched')

    def test_refused_resize(self):
        """The owner sees that it failed, and nobody sees why.

        Nova's conductor puts a sentence of its own in the place of the reason,
        and shows that to operators only.
        """
        self.start_host('alpha', switch=[1])
        server = self.boot(self.strict)
        with self.default_exposed():
            self.assertMoveRefused(
                self.resize, server,
                self.flavor(vcpus=4, nfv__vswitch_numa_affinity='strict'))
        server = self.api.get_server(server['id'])
        self.assertEqual('ACTIVE', server['status'])
        self.assertNotIn('fault', server)
        action, = [each for each in self.api.get_instance_actions(
            server['id']) if each['action'] == 'resize']
        path = '/servers/%s/os-instance-actions/%s' % (
            server['id'], action['request_id'])
        events = self.api.api_get(path).body['instanceAction']['events']
        self.assertIn('Error', [event['result'] for event in events])
        for event in events:
            self.assertNotIn('details', event)
        events = self.admin_api.api_get(path).body['instanceAction']['events']
        self.assertEqual({f'{PLAIN}No valid host found for resize'}, {
            event['details'] for event in events if event['details']})
