# SPDX-License-Identifier: Apache-2.0
"""Nothing in a snapshot or a cloud file acts on the machine of its reader."""

import dataclasses
import json
import os
import subprocess
import sys

from nova.conf import opts
from nova.scheduler import filters
from oslo_config import cfg

from nfv_sched.base import conf
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import options as cloud_options
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.commands import base

#: In each text of a file that could be a name of something on the machine.
MARKER = 'nowhere'
CALLED = ('pydoc.cli', f'{MARKER}.classes', 'os.abort',
          'nova.scheduler.filters.utils.validate_filter',
          'nova.scheduler.manager.SchedulerManager')
REAL = {'enabled_filters', 'image_properties_default_architecture',
        'image_props_weight_setting', 'alias', 'ledger', 'strict_enforcement',
        'moves_without_limits', 'stale_snapshot_policy', 'expose_reasons'}

CLOUD_FILE = """\
hosts:
- {name: h, cores: 4, memory: 8 GiB}
flavors:
  small: {vcpus: 1, memory: 1 GiB}
options:
  %s: {%s: %s}
steps:
- {boot: s, flavor: small}
"""


def registered():
    for group, options in [*opts.list_opts(), *conf.list_opts()]:
        for option in options:
            yield getattr(group, 'name', group), option.dest, option


def hostile_options():
    """All options there are, set to what could be opened or connected."""
    found = {}
    for section, name, option in registered():
        if name in REAL:
            continue
        if name.endswith(cloud_options.MULTIPLIER):
            value = 1.5
        elif type(option) in (cfg.ListOpt, cfg.MultiStrOpt):
            value = [f'{MARKER}.text']
        elif isinstance(option.type, cfg.types.String):
            value = f'http://{MARKER}/$transport_url'
        else:
            continue
        found.setdefault(section, {})[name] = value
    found['filter_scheduler'].update(
        available_filters=['nova.scheduler.filters.all_filters',
                           'nfv_sched.filters.all_filters', *CALLED],
        weight_classes=['nova.scheduler.weights.all_weighers', *CALLED],
        enabled_filters=[each.__name__ for each in filters.all_filters()])
    found['metrics']['weight_setting'] = ['free=1']
    return found


def hostile_cloud():
    """A snapshot whose texts could be taken for something to act upon."""
    cloud = snapshots.generated()
    text = f'/{MARKER} ${{transport_url}} {{{{7 * 7}}}} %(name)s'
    hosts = tuple(dataclasses.replace(
        host, cpu_info=json.dumps({'topology': text}), stats={MARKER: text},
        disabled_reason=text) for host in cloud.hosts)
    specs = {'capabilities:cpu_info:features': f'<in> {MARKER}',
             'aggregate_instance_extra_specs:x': f'<all-in> {MARKER}'}
    servers = tuple(dataclasses.replace(
        server, image={'hw_vif_model': text, MARKER: text},
        flavor=dataclasses.replace(server.flavor, extra_specs={
            **server.flavor.extra_specs, **specs}),
        hints={'query': (f'["=", "$free_ram_mb", "{MARKER}"]',),
               'build_near_host_ip': (MARKER,), 'cidr': (MARKER,)})
        for server in cloud.servers)
    return dataclasses.replace(
        cloud, hosts=hosts, servers=servers, options=hostile_options(),
        missing=(snapshot.Missing(
            kind=snapshot.MissingKind.NEUTRON, text=text),),
        flavors=tuple({server.flavor.name: server.flavor
                       for server in servers}.values()),
        aggregates=(snapshot.Aggregate(
            name=text, hosts=tuple(host.name for host in hosts),
            metadata={'cpu_allocation_ratio': text, MARKER: text,
                      'ram_weight_multiplier': text}),),
        groups=(snapshot.Group(
            uuid='5e1f0b8c-7d3a-4a39-9d0e-2f0c6a1b4d57', name=text,
            policy='anti-affinity', members=(servers[0].uuid,),
            rules={'max_server_per_host': text}),))


class HostileFilesTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        # A module that would be found if it were looked for.
        self.write_file(
            f'{MARKER}.py', f'open("{MARKER}-was-called", "w").close()\n'
            'def classes():\n    return []\n')

    def watch(self, *arguments):
        events = self.in_folder('events')
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-m',
             'nfv_sched.tests.unit.ops.commands.watched', events, MARKER,
             *arguments],
            cwd=self.folder, capture_output=True, text=True, timeout=300,
            env={**os.environ, 'PYTHONPATH': os.pathsep.join(
                [self.folder, *sys.path])})
        with open(events) as found:
            return done.returncode, done.stdout + done.stderr, json.load(found)

    def assert_harmless(self, *arguments):
        code, output, events = self.watch(*arguments)
        self.assertEqual([], events, arguments)
        self.assertNotIn('rabbit://', output)
        self.assertFalse(os.path.exists(self.in_folder(
            f'{MARKER}-was-called')))
        return code, output

    def test_snapshot(self):
        path = self.in_folder('cloud.json.gz')
        file.save(hostile_cloud(), path)
        steps = self.write_file('steps.yaml', 'steps: []')
        for arguments in (('flavor', 'explain', 'small'),
                          ('cloud', 'failover'),
                          ('simulation', 'run', steps)):
            code, output = self.assert_harmless(*arguments, '--from', path)
            for name in CALLED:
                self.assertIn(f"'{name}' is not a class", ' '.join(
                    output.split()), arguments)
            if arguments[0] != 'simulation':
                self.assertEqual(1, code, output)

    def test_cloud_file(self):
        for option, name in (('available_filters', CALLED[0]),
                             ('weight_classes', CALLED[1])):
            path = self.write_file('cloud.yaml', CLOUD_FILE % (
                'filter_scheduler', option, f'[{name}]'))
            code, output = self.assert_harmless('simulation', 'run', path)
            self.assertEqual(1, code, output)
            self.assertIn(
                f"cloud.yaml:6: options.filter_scheduler.{option}: '{name}' "
                'is not a class', output)

    def test_configuration_names_a_class(self):
        """What a file of this machine names may be named by a snapshot."""
        path = self.in_folder('cloud.json.gz')
        own = f'{MARKER}.classes'
        file.save(dataclasses.replace(
            snapshots.generated(), options={'filter_scheduler': {
                'weight_classes': [own]}}), path)
        config = self.write_file(
            'nova.conf', f'[filter_scheduler]\nweight_classes = {own}\n')
        arguments = ('cloud', 'failover', '--from', path)
        code, output = self.assert_harmless(*arguments)
        self.assertEqual(1, code, output)
        code, output, events = self.watch(*arguments, '--config-file', config)
        self.assertIn(code, (0, 3), output)
        self.assertIn('import', [event for event, _values in events])


class AllowedOptionsTest(base.CommandTestCase):

    def test_none_names_a_thing_of_the_machine(self):
        known = {f'{section}.{name}'
                 for section, name, _option in registered()}
        texts = {
            f'{section}.{name}' for section, name, option in registered()
            if cloud_options.may_be_set(section, name)
            and isinstance(option.type, (cfg.types.String, cfg.types.List))
            and not getattr(option.type, 'choices', None)}
        # Those that this release of Nova has.
        self.assertEqual(known & {
            'DEFAULT.default_availability_zone',
            'DEFAULT.default_schedule_zone',
            'filter_scheduler.aggregate_image_properties_isolation_namespace',
            'filter_scheduler.aggregate_image_properties_isolation_separator',
            'filter_scheduler.available_filters',
            'filter_scheduler.enabled_filters',
            'filter_scheduler.image_props_weight_setting',
            'filter_scheduler.isolated_hosts',
            'filter_scheduler.isolated_images',
            'filter_scheduler.weight_classes',
            'metrics.weight_setting', 'nfv_sched.node_label_prefix',
            'nfv_sched.shadow', 'nfv_sched.vswitch_label', 'pci.alias'}, texts)

    def test_multipliers_are_numbers(self):
        multipliers = [
            option for _section, name, option in registered()
            if name.endswith(cloud_options.MULTIPLIER)]
        self.assertGreater(len(multipliers), 10)
        for option in multipliers:
            self.assertIsInstance(option.type, cfg.types.Float)
