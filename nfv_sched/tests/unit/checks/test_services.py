# SPDX-License-Identifier: Apache-2.0
"""The check of Neutron against a Neutron of the test's own."""

from oslo_upgradecheck import upgradecheck

from nfv_sched.checks import services
from nfv_sched.tests.unit.limits import base
from nfv_sched.tests.unit.limits import neutron_api

CONF = base.CONF


class NeutronTest(base.NeutronTestCase):

    def setUp(self):
        super().setUp()
        self.enable()

    def enable(self, *filters, weighers=False):
        self.flags('filter_scheduler', enabled_filters=filters)
        self.flags('filter_scheduler', weight_classes=[
            'nova.scheduler.weights.all_weighers'] + (
                ['nfv_sched.weights.all_weighers'] if weighers else []))

    def assertCheck(self, code, *texts):
        result = services.neutron(CONF)
        self.assertEqual(code, result.code, result.details)
        for text in texts:
            self.assertIn(text, result.details)

    def test_not_needed(self):
        self.api.stop()
        self.assertCheck(upgradecheck.Code.SUCCESS, 'Not needed')
        self.assertEqual([], self.api.requests)

    def test_well(self):
        self.enable('VSwitchPortLimitFilter')
        self.assertCheck(upgradecheck.Code.SUCCESS, 'no ports yet')
        self.api.ports.extend(
            neutron_api.port(host='host1') for _ in range(50))
        self.api.agents.append(neutron_api.agent('L3 agent', 'host1'))
        del self.api.requests[:]
        self.assertCheck(
            upgradecheck.Code.SUCCESS,
            'shows 1 agents, and where ports are bound.')
        # It does not read them all.
        self.assertEqual(
            ['ports', 'security-group-rules', 'security-groups', 'networks',
             'agents'],
            [resource for resource, _query in self.api.requests])

    def test_down(self):
        self.api.stop()
        self.enable('SecurityRuleLimitFilter')
        self.assertCheck(
            upgradecheck.Code.FAILURE, 'section [neutron]', self.api.url)
        self.enable(weighers=True)
        self.assertCheck(upgradecheck.Code.WARNING, 'publishes nothing new')

    def test_hidden_hosts(self):
        self.enable('VSwitchPortLimitFilter')
        port = neutron_api.port(host='host1')
        del port['binding:host_id']
        self.api.ports.append(port)
        self.assertCheck(
            upgradecheck.Code.FAILURE, 'needs the role admin or service')

    def test_hidden_groups(self):
        """As Neutron hides them from the role service."""
        self.api.hides_groups = True
        self.api.ports.append(neutron_api.port(host='host1', groups=['sg']))
        self.enable('VSwitchPortLimitFilter')
        self.assertCheck(upgradecheck.Code.SUCCESS)
        self.enable('SecurityRuleLimitFilter')
        self.assertCheck(
            upgradecheck.Code.FAILURE, 'who needs the role admin. Limits of '
            'security-group rules are not kept.')

    def test_wrong_password(self):
        self.configure_keystone(password='wrong')
        self.enable('VSwitchPortLimitFilter')
        self.assertCheck(upgradecheck.Code.FAILURE, 'section [neutron]')
        self.assertNotIn('wrong', services.neutron(CONF).details)

    def test_right_password(self):
        self.configure_keystone()
        self.enable('VSwitchPortLimitFilter')
        self.assertCheck(upgradecheck.Code.SUCCESS)

    def test_no_section(self):
        self.configure()
        self.enable('VSwitchPortLimitFilter')
        self.assertCheck(upgradecheck.Code.FAILURE, 'section [neutron]')

    def test_no_agents_extension(self):
        self.enable('VSwitchPortLimitFilter')
        self.api.missing.update(['agents', 'security-group-rules'])
        self.assertCheck(upgradecheck.Code.SUCCESS, '0 agents')
        self.api.missing.add('ports')
        self.assertCheck(upgradecheck.Code.FAILURE, '404')
