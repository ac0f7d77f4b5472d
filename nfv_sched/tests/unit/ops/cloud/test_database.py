# SPDX-License-Identifier: Apache-2.0

import importlib
import inspect
import pkgutil
import re

import nova.conf
from nova.scheduler import filters
from nova.scheduler import weights

from nfv_sched.ops.cloud import database
from nfv_sched.tests import base

_OPTION = re.compile(r'CONF\.([a-z_]+)\.([a-z_]+)')
# What a snapshot has no measurements for.
_UNKNOWN = ('metrics',)


class OptionsTest(base.TestCase):

    def test_all_that_filters_and_weighers_of_nova_read(self):
        options = database.options(nova.conf.CONF)
        seen = set()
        for package in (filters, weights):
            for module in pkgutil.iter_modules(package.__path__):
                source = inspect.getsource(importlib.import_module(
                    f'{package.__name__}.{module.name}'))
                seen |= set(_OPTION.findall(source))
        self.assertIn(('filter_scheduler', 'isolated_hosts'), seen)
        self.assertEqual([], sorted(
            (group, name) for group, name in seen
            if group not in _UNKNOWN and name not in options[group]))

    def test_no_password(self):
        for names in database.options(nova.conf.CONF).values():
            for name in names:
                self.assertNotRegex(name, 'password|url|auth_|connection')
