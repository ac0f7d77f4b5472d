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

"""The flavor keys in Nova's API, and bad ones that got past it."""

from nova.tests.functional.api import client

from nfv_sched.tests.functional import base

GOOD = [
    ('nfv:vswitch_numa_affinity', 'strict'),
    ('nfv:vswitch_numa_affinity', 'prefer'),
    ('nfv:pci_numa_affinity', 'strict'),
    ('nfv:shared_vcpu', '0'),
    ('nfv:numa_node.0', '1'),
    ('nfv:numa_node.7', '31'),
    ('hw:wrs:vswitch_numa_affinity', 'strict'),
    ('hw:wrs:pci_numa_affinity', 'prefer'),
    ('hw:wrs:shared_vcpu', '3'),
    ('hw:numa_node.0', '0'),
    ('hw:numa_node.1', '0'),
]

BAD = [
    ('nfv:vswitch_numa_affinity', 'Strict'),
    ('nfv:vswitch_numa_affinity', 'always'),
    ('nfv:vswitch_numa_affinity', ''),
    ('nfv:pci_numa_affinity', 'yes'),
    ('nfv:shared_vcpu', '-1'),
    ('nfv:shared_vcpu', '0,1'),
    ('nfv:numa_node.0', 'one'),
    ('nfv:numa_node.x', '1'),
    ('hw:wrs:vswitch_numa_affinity', 'required'),
    ('hw:wrs:shared_vcpu', 'all'),
    ('hw:numa_node.0', '-1'),
    ('nfv:no_such_key', '1'),
]


class ExtraSpecsTest(base.NFVCloudTestCase):

    def try_spec(self, microversion, key, value):
        """Return the status of setting one extra spec on a new flavor."""
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

    def test_good_values_are_taken(self):
        for microversion in ('2.86', 'latest'):
            for key, value in GOOD:
                with self.row('%s %s=%r' % (microversion, key, value)):
                    self.assertEqual(
                        200, self.try_spec(microversion, key, value))

    def test_bad_values_are_refused(self):
        for microversion in ('2.86', 'latest'):
            for key, value in BAD:
                with self.row('%s %s=%r' % (microversion, key, value)):
                    self.assertEqual(
                        400, self.try_spec(microversion, key, value))

    def test_bad_values_of_older_clients_stop_only_their_guests(self):
        """Before 2.86 Nova takes anything; the scheduler does not."""
        self.start_host('host1', switch=[1])
        strict = self.flavor(nfv__vswitch_numa_affinity='strict')
        for key, value in BAD:
            if not value or key == 'nfv:no_such_key':
                continue
            self.admin_api.microversion = '2.85'
            flavor = self.flavor_with(dict(base.pinned(), **{key: value}))
            self.admin_api.microversion = self.microversion
            with self.row('%s=%r' % (key, value)):
                self.assertRefused(self.boot(flavor, expect='ERROR'), key)
        with self.row('the next guest'):
            self.assertPlaced(self.boot(strict), [1])

    def test_contradictions_are_refused_with_both_keys(self):
        self.start_host('host1', switch=[1])
        flavor = self.flavor(nfv__vswitch_numa_affinity='strict',
                             hw__wrs__vswitch_numa_affinity='prefer')
        self.assertRefused(self.boot(flavor, expect='ERROR'),
                           'nfv:vswitch_numa_affinity',
                           'hw:wrs:vswitch_numa_affinity')
        flavor = self.flavor(hw__numa_nodes='2', nfv__numa_node_0='1',
                             nfv__numa_node_1='1')
        self.assertRefused(self.boot(flavor, expect='ERROR'),
                           'nfv:numa_node.1')

    def test_synonyms_act_as_the_keys(self):
        self.start_host('host1', switch=[1])
        flavor = self.flavor(hw__wrs__vswitch_numa_affinity='strict')
        self.assertPlaced(self.boot(flavor), [1])
        flavor = self.flavor(hw__numa_node_0='1')
        self.assertPlaced(self.boot(flavor), [1])
        self.assertRefused(self.boot(flavor, expect='ERROR'),
                           'hw:numa_node.0')
