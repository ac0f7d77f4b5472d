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

    def test_strings(self):
        self.assertEqual(
            ['nova.network.neutron.get_client',
             'nova.pci.request._not_any_more'],
            self.used('from nova.network import neutron\n'
                      'from nova.pci import request\n'
                      'replace(neutron, "get_client", "another")\n'
                      'getattr(request, "_not_any_more", None)\n'))

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
