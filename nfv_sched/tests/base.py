# SPDX-License-Identifier: Apache-2.0
"""Base class of the unit tests."""

import re

import fixtures
import hypothesis
import nova.conf
from nova import objects
from oslo_config import fixture as config_fixture
from oslotest import timeout
import testtools

from nfv_sched.base import conf
from nfv_sched.scheduler import process

CONF = nova.conf.CONF
objects.register_all()
conf.register_opts(CONF)

#: Whether devices of PCI aliases can be live-migrated; not in Nova 29.
LIVE_MIGRATABLE = hasattr(objects.InstancePCIRequest, 'is_live_migratable')

# A slow machine fails no test, and the same cases are tried everywhere.
hypothesis.settings.register_profile(
    'nfv_sched', deadline=None, database=None, derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile('nfv_sched')


def cloud_file(text):
    """Return a cloud file without the keys that this Nova does not know."""
    return text if LIVE_MIGRATABLE else re.sub(
        r',\s*live_migratable: true', '', text)


class TimedTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(timeout.Timeout())


class TestCase(TimedTestCase):
    """A test with its own configuration and log."""

    def setUp(self):
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(CONF))
        CONF([], project='nova', default_config_files=[])
        self.log = self.useFixture(fixtures.FakeLogger(
            'nfv_sched'))
        # What a weigher or filter may have started.
        self.addCleanup(process.STATE.reset)

    def flags(self, group='nfv_sched', **options):
        self.config.config(group=group, **options)
