# SPDX-License-Identifier: Apache-2.0
"""Why a service cannot be reached, from real failures."""

import socket

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1.identity import v3
from keystoneauth1 import session as ks_session

from nfv_sched.base import connection_errors
from nfv_sched.base import http_limits
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.cloud import nova_api


class ConnectionErrorsTest(base.TestCase):

    @staticmethod
    def failure(url, auth_url, password='s3cret'):
        session = ks_session.Session(timeout=1, auth=v3.Password(
            auth_url, username='nova', password=password,
            project_name='service', user_domain_id='default',
            project_domain_id='default'))
        try:
            session.get(url)
        except ks_exceptions.ClientException as exc:
            return exc
        raise AssertionError(f'{url} was read')

    def closed(self):
        with socket.create_server(('127.0.0.1', 0)) as server:
            return f'http://127.0.0.1:{server.getsockname()[1]}'

    def test_keystone(self):
        silent = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(silent.close)
        for url, why in (
                (self.closed(), 'connection refused'),
                ('http://keystone.invalid:5000', 'unknown host name'),
                (f'http://127.0.0.1:{silent.getsockname()[1]}',
                 'no answer in time')):
            auth_url = f'{url}/v3'
            error = self.failure('http://127.0.0.1:1/x', auth_url)
            self.assertEqual(f'{url} does not answer ({why})',
                             http_limits.reason(error))
            self.assertEqual('[neutron] auth_url',
                             connection_errors.wrong_option(
                                 error, 'neutron', auth_url))

    def test_service(self):
        api = nova_api.CloudAPI().start_for(self)
        auth_url = f'{api.url}/identity/v3'
        url = self.closed()
        error = self.failure(f'{url}/x', auth_url,
                             nova_api.neutron_api.PASSWORD)
        self.assertEqual(f'{url} does not answer (connection refused)',
                         http_limits.reason(error))
        self.assertEqual(
            'the endpoint in the catalog of Keystone, or [neutron] '
            'endpoint_override', connection_errors.wrong_option(
                error, 'neutron', auth_url))
        error = self.failure(f'{url}/x', auth_url, 'wrong')
        self.assertEqual(
            f'{api.url} does not accept the account (HTTP 401)',
            http_limits.reason(error))
        self.assertEqual('[neutron] username and password',
                         connection_errors.wrong_option(
                             error, 'neutron', auth_url))

    def test_origin(self):
        for url, origin in (
                ('http://nova:s3cret@host:5000/v3', 'http://host:5000'),
                ('https://[::1]:9/x', 'https://[::1]:9'),
                ('http://host', 'http://host')):
            self.assertEqual(origin, connection_errors.origin_of(url))

    def test_other(self):
        self.assertIsNone(connection_errors.reason(ValueError('x')))
        self.assertIsNone(connection_errors.origin(ValueError('x')))
        self.assertEqual('', connection_errors.wrong_option(
            ValueError('x'), 'neutron', None))
