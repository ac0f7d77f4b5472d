# SPDX-License-Identifier: Apache-2.0
"""Base class of the tests that read Neutron over HTTP."""

import os
import time

import fixtures
from keystoneauth1 import loading as ks_loading

from nfv_sched.ledger import neutron
from nfv_sched.tests import base
from nfv_sched.tests.unit.limits import neutron_api

CONF = neutron.CONF


class TrustingCheck(neutron.ReadingCheck):
    """It accepts the next reading, whatever that shows, and no other."""

    is_trusting = True

    def check(self, previous, snapshot):
        if not self.is_trusting:
            return super().check(previous, snapshot)
        self.is_trusting = False
        return []


class NeutronTestCase(base.TestCase):
    """A test with a Neutron of its own and a nova.conf that names it."""

    def setUp(self):
        super().setUp()
        self.api = neutron_api.NeutronAPI().start_for(self)
        self.configure(auth_type='none', endpoint_override=self.api.url)
        self.flags(neutron_request_timeout=20.0)

    def configure(self, **options):
        """Write and read a nova.conf with these options of ``[neutron]``."""
        self.nova_conf = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'nova.conf')
        with open(self.nova_conf, 'w') as nova_conf:
            nova_conf.write('[neutron]\n')
            for name, value in options.items():
                nova_conf.write(f'{name} = {value}\n')
        CONF(['--config-file', self.nova_conf], project='nova')
        if options.get('auth_type') == 'password':
            self.addCleanup(self._forget_plugin, 'password')

    def configure_keystone(self, password=neutron_api.PASSWORD, **options):
        self.api.needs_token = True
        self.configure(
            auth_type='password', auth_url=f'{self.api.url}/identity/v3',
            username='nova', password=password, project_name='service',
            user_domain_id='default', project_domain_id='default', **options)

    @staticmethod
    def _forget_plugin(name):
        """Unregister what loading a plugin has registered, partly required."""
        CONF.reset()
        for option in ks_loading.get_auth_plugin_conf_options(name):
            CONF.unregister_opt(option, group='neutron')

    def error(self):
        """The text of the error that reading ends with."""
        return str(self.assertRaises(
            neutron.NeutronError, neutron.read_snapshot))

    def wait_for(self, condition, seconds=30.0):
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            if time.monotonic() > deadline:
                self.fail(f'nothing happened within {seconds} s; the log:\n'
                          f'{self.log.output}')
            time.sleep(0.01)
        return value
