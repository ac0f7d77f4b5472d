# SPDX-License-Identifier: Apache-2.0

import pathlib

import fixtures
from keystoneauth1 import loading as ks_loading

from nfv_sched.nova import database
from nfv_sched.ops.answers.capacity import quota
from nfv_sched.tests import base
from nfv_sched.tests.unit.limits import neutron_api
from nfv_sched.tests.unit.ops.cloud import nova_api

CONF = database.CONF


class KeystoneTest(base.TestCase):
    """With the account of [placement]."""

    def configure(self, **options):
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        pathlib.Path(path).write_text('[placement]\n' + ''.join(
            f'{name} = {value}\n' for name, value in options.items()))
        CONF(['--config-file', path], project='nova')
        self.addCleanup(self.forget)

    @staticmethod
    def forget():
        CONF.reset()
        for option in ks_loading.get_auth_plugin_conf_options('password'):
            CONF.unregister_opt(option, group='placement')

    def test_names(self):
        api = nova_api.start(self)
        api.projects = [{'id': 'a' * 32, 'name': 'telco'}]
        self.configure(
            auth_type='password', auth_url=f'{api.url}/identity/v3',
            username='nova', password=neutron_api.PASSWORD,
            project_name='service', user_domain_id='default',
            project_domain_id='default')
        # The catalog of the stand-in has public URLs only.
        self.flags(valid_interfaces='public', group='keystone')
        for name in ('telco', 'a' * 32):
            self.assertEqual('a' * 32, quota.project_id(name))
        api.stop()
        self.assertUnread('Keystone cannot be read: ')

    def test_no_account(self):
        self.configure()
        self.assertUnread('Keystone cannot be read: ')
        self.configure(auth_type='nonsense')
        self.assertUnread('no connection to Keystone: ')

    def assertUnread(self, text):
        self.assertRaisesRegex(
            quota.QuotaError, f'^{text}', quota.project_id, 'telco')
