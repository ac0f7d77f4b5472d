# SPDX-License-Identifier: Apache-2.0
"""How many servers the quota of a project allows, against Nova's own refusal.

Servers are booted until the API refuses one.
"""

import contextlib
import io
import json

import fixtures
from nova.limit import utils as limit_utils
from nova.tests.functional.api import client
from oslo_limit import fixture as limit_fixture

from nfv_sched.ops.answers.capacity import quota
from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import test_snapshot


class QuotaTestCase(base.NFVCloudTestCase):

    def setUp(self):
        super().setUp()
        self.start_host('host1')
        self.project = self.api.project_id

    def snapshot_flavor(self, flavor):
        row = self.admin_api.api_get(
            f'/flavors/{flavor}').body['flavor']
        specs = self.admin_api.api_get(
            f'/flavors/{flavor}/os-extra_specs').body['extra_specs']
        return snapshot.Flavor(name=row['name'], id=flavor,
                               vcpus=row['vcpus'], memory=row['ram'],
                               disk=row['disk'], extra_specs=specs)

    def allowed(self, flavor):
        allowance = quota.from_nova(self.project)(
            self.snapshot_flavor(flavor))
        return allowance.allows, tuple(
            use.resource for use in allowance.scarce)

    def fill(self, flavor):
        count = 0
        while True:
            try:
                self.boot(flavor)
            except client.OpenStackApiException as exc:
                self.assertEqual(403, exc.response.status_code)
                return count
            count += 1

    def check(self, expected, flavor):
        self.assertEqual(expected, self.allowed(flavor))
        self.assertEqual(expected[0], self.fill(flavor))
        self.assertEqual(0, self.allowed(flavor)[0])
        self.delete_all()
        self.assertEqual(expected, self.allowed(flavor))


class LegacyQuotaTest(QuotaTestCase):
    """Quotas in Nova's API database."""

    def set_quota(self, **limits):
        self.admin_api.api_put(f'/os-quota-sets/{self.project}', {
            'quota_set': limits})

    def test_quota(self):
        pinned = self.flavor(vcpus=2)
        shared = self.flavor_with({}, vcpus=1)
        self.set_quota(instances=3, cores=20, ram=51200)
        self.check((3, ('instances',)), pinned)
        self.set_quota(instances=30, cores=5, ram=51200)
        self.check((2, ('cores',)), pinned)
        self.set_quota(instances=30, cores=-1, ram=600)
        self.check((2, ('ram',)), shared)
        self.boot(pinned)
        self.assertEqual((1, ('ram',)), self.allowed(shared))
        self.set_quota(instances=-1, cores=-1, ram=-1)
        self.assertEqual((None, ()), self.allowed(shared))

    def test_default(self):
        """A project without quota of its own has that of nova.conf."""
        self.flags(instances=2, group='quota')
        self.assertEqual((2, ('instances',)),
                         self.allowed(self.flavor_with({}, vcpus=1)))


class UnifiedQuotaTest(QuotaTestCase):
    """Unified limits of Keystone, where pinned CPUs have one of their own."""

    REGISTERED = {
        'servers': 4, 'class:VCPU': 3, 'class:PCPU': 4,
        'class:MEMORY_MB': 2048, 'class:DISK_GB': 100,
        # Nova asks for these when it boots a server.
        'server_metadata_items': 128, 'server_injected_files': 5,
        'server_injected_file_content_bytes': 10 * 1024,
        'server_injected_file_path_bytes': 255, 'server_key_pairs': 100,
        'server_groups': 10, 'server_group_members': 10}

    def configure(self):
        super().configure()
        self.flags(driver='nova.quota.UnifiedLimitsDriver', group='quota')

    def setUp(self):
        super().setUp()
        self.limits = self.useFixture(
            limit_fixture.LimitFixture(dict(self.REGISTERED), {}))

    def test_quota(self):
        pinned = self.flavor(vcpus=2)
        shared = self.flavor_with({}, vcpus=1)
        self.check((2, ('class:PCPU',)), pinned)
        self.check((3, ('class:VCPU',)), shared)
        self.limits.projlimits[self.project] = {
            'class:MEMORY_MB': 300, 'class:VCPU': 20}
        self.check((1, ('class:MEMORY_MB',)), shared)

    def test_resource_without_limit(self):
        """It is unlimited if no limit is required, but not before Nova 31."""
        del self.limits.reglimits['class:PCPU']
        pinned = self.flavor(vcpus=2)
        if not hasattr(limit_utils, 'should_enforce'):
            self.check((0, ('class:PCPU',)), pinned)
            return
        if not hasattr(limit_utils, 'IdentityClient'):
            self.skipTest("oslo.limit's fixture of this release does not list "
                          'limits')
        self.useFixture(fixtures.MockPatchObject(
            limit_utils, 'IDENTITY_CLIENT', limit_utils.IdentityClient(
                self.limits.mock_conn, 'service', 'region')))
        self.flags(unified_limits_resource_list=['servers'], group='quota')
        self.check((4, ('servers',)), pinned)
        self.flags(unified_limits_resource_list=['class:PCPU'], group='quota')
        self.check((0, ('class:PCPU',)), pinned)


class QuotaOfCloudTest(test_snapshot.SnapshotTestCase):
    """The command, on the cloud as it is read from Nova's databases."""

    def capacity(self, *args):
        cloud = self.read()
        self.useFixture(fixtures.MockPatchObject(
            cli_base.NFVSched, 'configure_logging'))
        self.useFixture(fixtures.MockPatchObject(
            source, 'reader', lambda arguments: lambda: cloud))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli_base.main([
                'capacity', 'list', '--project', self.api.project_id,
                '-f', 'json', *args])
        return code, json.loads(out.getvalue()), err.getvalue()

    def test_command(self):
        self.flags(instances=10, cores=20, ram=51200, group='quota')
        flavor = self.flavor(vcpus=2)
        self.boot(flavor)
        code, document, err = self.capacity()
        self.assertEqual((0, ''), (code, err))
        found, = [row['quota'] for row in document['capacities']
                  if row['flavor_id'] == flavor]
        self.assertEqual((9, [('instances', 10, 1), ('cores', 20, 2),
                              ('ram', 51200, 256)]), (
            found['allows'], [
                (each['resource'], each['limit'], each['used'])
                for each in found['resources']]))

    def test_unread(self):
        """All else is shown."""
        self.flags(driver='nova.quota.UnifiedLimitsDriver', group='quota')
        code, document, err = self.capacity()
        self.assertEqual(1, code)
        self.assertIn(f'error: the quota of project {self.api.project_id} '
                      'cannot be read: SessionInitError: ', err)
        self.assertEqual({None}, {
            row['quota'] for row in document['capacities']})
