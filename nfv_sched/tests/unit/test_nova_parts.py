# SPDX-License-Identifier: Apache-2.0
"""The documentation lists the private parts of Nova that are used."""

from importlib import metadata
import pathlib

import fixtures

from nfv_sched.nova import features
from nfv_sched.tests import base
from nfv_sched.tests import nova_parts

_INSTALLED = int(metadata.version('nova').partition('.')[0])
_NEWEST = max(features.RELEASES)


class NovaPartsTest(base.TestCase):
    """Run "tools/regenerate nova-parts" if one of these fails."""

    def test_table(self):
        if _INSTALLED != _NEWEST:
            self.skipTest('the table is made with the newest Nova')
        self.assertEqual(
            nova_parts.used_parts(),
            {name: modules
             for name, (modules, _releases) in nova_parts.read().items()})

    def test_installed(self):
        """Nova has what the table says; a later one what the newest has."""
        release = _INSTALLED if _INSTALLED in features.RELEASES else _NEWEST
        table = nova_parts.read()
        self.assertEqual(
            [name for name, (_modules, releases) in table.items()
             if release in releases],
            [name for name in table if nova_parts.exists(name)])


class UsedPartsTest(base.TestCase):

    def used(self, source, **others):
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, text in {'one': source, **others}.items():
            (root / f'{name}.py').write_text(text)
        return [name for name, modules in nova_parts.used_parts(root).items()
                if 'one.py' in modules]

    def test_attributes(self):
        self.assertEqual(
            ['nova.virt.hardware.numa_get_constraints',
             'nova.virt.hardware.parse_cpu_spec'],
            self.used('def run():\n'
                      '    parse(hardware.numa_get_constraints.__doc__)\n'
                      'from nova.virt import hardware\n'
                      'from nova.virt.hardware import parse_cpu_spec as parse'
                      '\n'))

    def test_stable(self):
        self.assertEqual(
            [], self.used('import nova.conf\n'
                          'from nova import exception, objects\n'
                          'from nova.scheduler import filters\n'
                          'from nova.scheduler import weights\n'
                          'class Filter(filters.BaseHostFilter):\n'
                          '    def host_passes(self):\n'
                          '        raise exception.NovaException(\n'
                          '            nova.conf.CONF, objects.Flavor,\n'
                          '            weights.WeighedHost)\n'))

    def test_functions_import(self):
        self.assertEqual(
            ['nova.db.api.models.Flavors', 'nova.db.main.models.Instance'],
            self.used('def one():\n'
                      '    from nova.db.api import models\n'
                      '    return models.Flavors.__table__\n'
                      'def two():\n'
                      '    from nova.db.main import models\n'
                      '    return models.Instance.__table__\n'))

    def test_strings(self):
        self.assertEqual(
            ['nova.network.neutron.get_client',
             'nova.pci.request._not_any_more'],
            self.used('from nova.network import neutron\n'
                      'from nova.pci import request\n'
                      'replace(neutron, "get_client", "another")\n'
                      'getattr(request, "_not_any_more", None)\n'))

    def test_objects(self):
        """Private attributes of objects, by the classes that are named."""
        self.assertEqual(
            ['nova.pci.stats.PciDeviceStats',
             'nova.pci.stats.PciDeviceStats._find_pool'],
            self.used('from nova.pci import stats\n'
                      'def run(device):\n'
                      '    found = stats.PciDeviceStats(None)\n'
                      '    found._find_pool(device)\n'
                      '    return found.pools, found._other\n'))

    def test_module(self):
        """A module that is imported for what it does."""
        self.assertEqual(['nova.monkey_patch'],
                         self.used('import nova.monkey_patch\n'))

    def test_listed(self):
        """Methods of objects that the check of Nova lists, by their class."""
        self.assertEqual(
            ['nova.scheduler.client.report.SchedulerReportClient.'
             'get_allocation_candidates',
             'nova.scheduler.host_manager.HostState.consume_from_request'],
            self.used('def run(host, client):\n'
                      '    host.consume_from_request(None)\n'
                      '    replace(client, "get_allocation_candidates")\n'))

    def test_subclass(self):
        """Names of the Nova class, by way of another module."""
        self.assertEqual(
            ['nova.pci.manager.PciDevTracker',
             'nova.pci.manager.PciDevTracker._build_device_tree',
             'nova.pci.manager.PciDevTracker.free_device',
             'nova.pci.manager.PciDevTracker.save'],
            self.used('from nfv_sched import names\n'
                      'class Tracker(names.Tracker):\n'
                      '    def save(self):\n'
                      '        self._build_device_tree(self.own)\n'
                      '        super().free_device()\n'
                      '    def __init__(self):\n'
                      '        pass\n',
                      names='from nova.pci import manager\n'
                            'Tracker = manager.PciDevTracker\n'))
