# SPDX-License-Identifier: Apache-2.0

"""The flavor keys in Nova's API, and bad ones that got past it."""

from nova.tests.functional.api import client
from oslo_upgradecheck import upgradecheck

from nfv_sched.checks import computes
from nfv_sched.tests.functional import base

GOOD = [
    ('nfv:vswitch_numa_affinity', 'strict'),
    ('nfv:numa_node.7', '31'),
    ('hw:wrs:shared_vcpu', '3'),
]

BAD = [
    ('nfv:vswitch_numa_affinity', 'Strict'),
    ('nfv:vswitch_numa_affinity', ''),
    ('nfv:shared_vcpu', '0,1'),
    ('nfv:numa_node.x', '1'),
    ('hw:numa_node.0', '-1'),
    ('nfv:no_such_key', '1'),
]


# Keys that do not exist, and what the owner of a guest reads.
UNKNOWN = [
    ('nfv:vswitch_affinity', 'strict',
     'flavor: unknown key nfv:vswitch_affinity, did you mean '
     'nfv:vswitch_numa_affinity'),
    ('nfv:no_such_key', '1', 'flavor: unknown key nfv:no_such_key, see'),
]


class ExtraSpecsTest(base.NFVCloudTestCase):

    def try_spec(self, microversion, key, value):
        self.admin_api.microversion = microversion
        flavor = self.flavor_with({})
        try:
            self.admin_api.post_extra_spec(
                flavor, {'extra_specs': {key: value}})
        except client.OpenStackApiException as error:
            return error.response.status_code
        finally:
            self.admin_api.microversion = self.microversion
        return 200

    def unchecked(self, extra_specs, microversion='2.85'):
        """Create a flavor as clients do whose requests are not checked."""
        self.admin_api.microversion = microversion
        flavor = self.flavor_with(extra_specs)
        self.admin_api.microversion = self.microversion
        return flavor

    def test_api(self):
        for microversion in ('2.86', 'latest'):
            for values, status in ((GOOD, 200), (BAD, 400)):
                for key, value in values:
                    with self.row('%s %s=%r' % (microversion, key, value)):
                        self.assertEqual(
                            status, self.try_spec(microversion, key, value))

    def test_scheduling(self):
        self.start_host('host1', switch=[1])
        self.unknown_keys_of_older_clients_stop_only_their_guests()
        self.bad_values_of_older_clients_stop_only_their_guests()
        self.contradictions_are_refused_with_both_keys()
        self.synonyms_act_as_the_keys()

    def unknown_keys_of_older_clients_stop_only_their_guests(self):
        """What the usual client uses for flavors, 2.61, checks nothing."""
        for key, value, words in UNKNOWN:
            for specs in ({}, {'hw:numa_nodes': '1'}, base.pinned()):
                flavor = self.unchecked(dict(specs, **{key: value}), '2.61')
                with self.row('%s beside %s' % (key, specs)):
                    self.assertRefused(
                        self.boot(flavor, expect='ERROR'), words)
        with self.row('the command names them'):
            result = computes.flavors()
            self.assertEqual(upgradecheck.Code.WARNING, result.code)
            for key, _value, _words in UNKNOWN:
                self.assertIn('unknown key %s, ' % key, result.details)
        with self.row('another guest'):
            self.boot(self.flavor_with({}))

    def bad_values_of_older_clients_stop_only_their_guests(self):
        """Before 2.86 Nova takes anything; the scheduler does not."""
        strict = self.flavor(nfv__vswitch_numa_affinity='strict')
        for key, value in BAD:
            if not value:
                continue
            flavor = self.unchecked(dict(base.pinned(), **{key: value}))
            with self.row('%s=%r' % (key, value)):
                self.assertRefused(self.boot(flavor, expect='ERROR'), key)
        with self.row('the next guest'):
            self.assertPlaced(self.boot(strict), [1])

    def contradictions_are_refused_with_both_keys(self):
        with self.row('both spellings'):
            flavor = self.flavor(nfv__vswitch_numa_affinity='strict',
                                 hw__wrs__vswitch_numa_affinity='prefer')
            self.assertRefused(self.boot(flavor, expect='ERROR'),
                               'nfv:vswitch_numa_affinity',
                               'hw:wrs:vswitch_numa_affinity')
        with self.row('two guest nodes on one host node'):
            flavor = self.flavor(hw__numa_nodes='2', nfv__numa_node_0='1',
                                 nfv__numa_node_1='1')
            self.assertRefused(self.boot(flavor, expect='ERROR'),
                               'nfv:numa_node.1')

    def synonyms_act_as_the_keys(self):
        with self.row('synonyms'):
            flavor = self.flavor(hw__wrs__vswitch_numa_affinity='strict')
            self.assertPlaced(self.boot(flavor), [1])
            flavor = self.flavor(hw__numa_node_0='1')
            self.assertPlaced(self.boot(flavor), [1])
            self.assertRefused(self.boot(flavor, expect='ERROR'),
                               'hw:numa_node.0')
