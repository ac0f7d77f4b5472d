# SPDX-License-Identifier: Apache-2.0
"""The checks of compute nodes and of the ledger, in a cloud of fixtures.

What compute nodes declare goes the way it always goes: from the driver by the
resource tracker into the database.
"""

import json

import nova.conf
from nova.db.api import models as api_models
from nova import objects
from oslo_upgradecheck import upgradecheck
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa

from nfv_sched.checks import computes
from nfv_sched.checks import services
from nfv_sched.limits import names
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import test_ledger_process
from nfv_sched.tests.functional import test_ledger_service

CONF = nova.conf.CONF

SUCCESS = upgradecheck.Code.SUCCESS
WARNING = upgradecheck.Code.WARNING
FAILURE = upgradecheck.Code.FAILURE


class ResultMixin:

    def assertResult(self, result, code, *texts):
        self.assertEqual(code, result.code, result.details)
        for text in texts:
            self.assertIn(text, result.details)


class LabelsTest(ResultMixin, base.NFVCloudTestCase):

    def check(self):
        return computes.labels(CONF, computes.Computes())

    def test_no_hosts(self):
        self.assertResult(self.check(), WARNING, 'no compute nodes yet')

    def test_all(self):
        self.start_host('host1')
        self.start_host('host2', switch=[0, 1])
        self.assertResult(self.check(), SUCCESS, '2 compute nodes declare')

    def test_nobody_declares_anything(self):
        self.start_host('host1', labels=base.NO_LABELS)
        self.assertResult(
            self.check(), FAILURE, 'No compute node says where its virtual '
            'switch runs')
        self.flags(enabled_filters=['PCINUMAAffinityFilter'],
                   group='filter_scheduler')
        self.assertResult(self.check(), WARNING, 'no label nfv_node0')
        self.flags(enabled_filters=['PlaceNUMAAffinityFilter'],
                   group='filter_scheduler')
        self.assertResult(self.check(), WARNING, 'no label nfv_node0')
        self.flags(enabled_filters=['VSwitchPortLimitFilter'],
                   group='filter_scheduler')
        self.assertResult(self.check(), SUCCESS, 'Not needed')

    def test_faults(self):
        for name, fields in (
                ('host1', {}),
                ('host2', {'labels': base.NO_LABELS}),
                ('host3', {'labels': base.NO_LABELS}),
                ('networks', {'labels': base.NO_LABELS,
                              'physnets': {'foo': [0]}}),
                ('incomplete', {'labels': base.SWITCH_LABEL,
                                'physnets': {'nfv_node1': [1]}}),
                ('elsewhere', {'labels': base.SWITCH_LABEL, 'physnets': {
                    'nfv_node0': [1], 'nfv_node1': [0, 1]}}),
                ('seven', {'physnets': {'nfv_node7': [0]}}),
                ('odd', {})):
            self.start_host(name, **fields)
        node = objects.ComputeNode.get_by_host_and_nodename(
            self.ctxt, 'odd', 'odd')
        node.numa_topology = '{"nova_object.name": "Other"}'
        node.save()
        result = self.check()
        self.assertResult(
            result, WARNING, 'host2, host3: no label nfv_vswitch. '
            'Servers with nfv:vswitch_numa_affinity=strict are not placed',
            'host2, host3, networks: no label nfv_node0, nfv_node1. Servers',
            'networks: no label nfv_vswitch. Only their physical networks say',
            'incomplete: no label nfv_node0. Servers',
            'elsewhere: label nfv_node0 is on NUMA node 1, and not used. Set '
            '[neutron_physnet_nfv_node0] numa_nodes = 0.',
            'elsewhere: label nfv_node1 is on NUMA node 0, 1, and not used.',
            'seven: label nfv_node7, but the host has no NUMA node 7',
            'odd: its NUMA topology is unreadable')
        self.assertNotIn('host1', result.details)

    def test_one_node_needs_no_node_label(self):
        self.start_host('host1', nodes=1, switch=[0],
                        labels=base.SWITCH_LABEL)
        self.assertResult(self.check(), SUCCESS)

    def test_no_topology(self):
        self.start_host('host1', nodes=0)
        self.assertResult(self.check(), FAILURE, 'host1: no NUMA topology')

    def test_other_names(self):
        self.start_host('host1')
        self.flags(vswitch_label='switch', node_label_prefix='n',
                   group='nfv_sched')
        self.assertResult(
            self.check(), WARNING, 'no label switch.', 'no label n0, n1.')


class PinningTest(ResultMixin, base.NFVCloudTestCase):

    def check(self):
        return computes.pinning(CONF, computes.Computes())

    def disable(self, value):
        self.flags(disable_fallback_pcpu_query=value, group='workarounds')

    def test_dedicated(self):
        self.start_host('host1')
        self.assertResult(
            self.check(), WARNING, 'is false, though every host',
            'set the option to true')
        self.disable(True)
        self.assertResult(self.check(), SUCCESS)

    def test_without_cpu_sets(self):
        self.start_host('host1')
        self.flags(cpu_shared_set=None, cpu_dedicated_set=None,
                   group='compute')
        self._run_periodics()
        self.assertResult(self.check(), SUCCESS)
        self.disable(True)
        self.assertResult(
            self.check(), WARNING, 'no host has [compute] cpu_dedicated_set')

    def test_mixed(self):
        self.start_host('host1')
        self.start_host('host2', labels=base.NO_LABELS)
        # As host2 would report without sets of CPUs.
        node = objects.ComputeNode.get_by_host_and_nodename(
            self.ctxt, 'host2', 'host2')
        topology = objects.NUMATopology.obj_from_db_obj(node.numa_topology)
        for cell in topology.cells:
            cell.cpuset = cell.pcpuset
        node.numa_topology = topology._to_json()
        node.save()
        self.assertResult(self.check(), WARNING, 'can go to host2 without')
        labels = computes.labels(CONF, computes.Computes())
        self.assertResult(labels, WARNING, 'host2: no label nfv_vswitch')
        # Ordinary hosts beside those for pinned servers are sound.
        self.disable(True)
        self.assertResult(
            self.check(), SUCCESS, 'No pinned servers go to host2 without')
        labels = computes.labels(CONF, computes.Computes())
        self.assertResult(
            labels, SUCCESS, '1 compute nodes declare',
            'No labels, and no dedicated CPUs: host2.')


class AggregatesTest(ResultMixin, base.NFVCloudTestCase):

    def check(self):
        return computes.aggregates(computes.Computes())

    def test_numbers(self):
        self.start_host('host1')
        aggregate = objects.Aggregate(
            self.ctxt, name='rack', uuid=uuids.rack, metadata={
                'vswitch_ports_per_node': '100', 'color': 'blue'})
        aggregate.create()
        aggregate.add_host('host1')
        self.assertResult(
            self.check(), SUCCESS, '1 overrides in 1 aggregates')
        aggregate.update_metadata({
            'vswitch_ports_per_node': 'many',
            'router_weight_multiplier': '1,5'})
        self.assertResult(
            self.check(), WARNING,
            'Aggregate rack: vswitch_ports_per_node=many is not a number',
            'router_weight_multiplier=1,5')
        aggregate.update_metadata({
            'vswitch_ports_per_node': None, 'router_weight_multiplier': None,
            'shadow': 'VSwitchNUMAAffinityFilter'})
        self.assertResult(
            self.check(), WARNING,
            'Aggregate rack: shadow has no effect any more')


class LedgerTest(ResultMixin, test_ledger_service.LedgerTestCase):

    def setUp(self):
        super().setUp()
        self.flags(enabled_filters=['VSwitchPortLimitFilter'],
                   group='filter_scheduler')

    def check(self):
        return services.ledger(CONF)

    def test_not_in_use(self):
        self.flags(enabled_filters=[], group='filter_scheduler')
        self.placement_api.stop()
        self.assertResult(self.check(), SUCCESS, 'Not in use')

    def test_never_published(self):
        self.start_host('host1')
        self.assertResult(
            self.check(), FAILURE, names.PORTS, names.RULES, names.TRAIT,
            'nfv-sched-ledger has not done a round yet')
        self.assertEqual([], self.placement_api.writes())
        self.flags(enabled_filters=[], weight_classes=[
            'nfv_sched.weights.all_weighers'], group='filter_scheduler')
        self.assertResult(
            self.check(), WARNING, 'not weighed by their network load')

    def test_published(self):
        self.start_host('host1')
        self.publish()
        del self.placement_api.requests[:]
        self.assertResult(
            self.check(), SUCCESS, '1 hosts are published and up to date',
            'allocation_conflict_retry_count = 1')
        self.assertEqual([], self.placement_api.writes())

    def test_host_missing(self):
        self.start_host('host1')
        self.publish()
        self.start_host('host2')
        self.assertResult(self.check(), WARNING, 'Not published: host2.')

    def test_all_hosts_missing(self):
        self.publish()
        self.start_two()
        self.assertResult(
            self.check(), FAILURE, 'Not published: host1, host2.')

    def test_stale(self):
        self.start_host('host1')
        self.publish()
        self.bind('host1', 3, owner='network:dhcp')
        self.assertResult(
            self.check(), WARNING, 'not as it should be: host1',
            'usual for 30 s')
        self.publish()
        self.assertResult(self.check(), SUCCESS)
        self.flags(vswitch_ports_per_node=30, group='nfv_sched')
        self.assertResult(self.check(), WARNING, 'reads other limits')

    def test_leftovers(self):
        self.start_two()
        self.publish()
        self.allocate(uuids.server, 'host2', ports=1)
        for name in ('host1', 'host2'):
            objects.ComputeNode.get_by_host_and_nodename(
                self.ctxt, name, name).destroy()
        self.start_host('host3')
        self.publish(dry_run=True)
        self.assertResult(
            self.check(), FAILURE, 'Left over: host1_nfv_ledger.',
            'host2_nfv_ledger: the compute node is gone, but servers',
            'Not published: host3')

    def test_placement_down(self):
        self.start_host('host1')
        self.placement_api.stop()
        self.assertResult(self.check(), WARNING, 'could not be compared')
        self.assertResult(
            services.placement(CONF), FAILURE, 'section [placement]')

    def test_placement_refuses(self):
        self.placement_api.fault = lambda method, path: 403
        self.assertResult(
            services.placement(CONF), FAILURE, '403',
            'needs the role admin or service')

    def test_placement_up(self):
        self.start_host('host1')
        self.assertResult(
            services.placement(CONF), SUCCESS, 'has 0 resource providers')
        self.publish()
        self.assertResult(
            services.placement(CONF), SUCCESS, 'has 1 resource providers')

    def test_neutron_down(self):
        self.start_host('host1')
        self.publish()
        self.neutron_api.stop()
        self.assertResult(self.check(), WARNING, 'could not be compared')

    def test_one_host_fails(self):
        self.start_two()
        self.publish()
        provider = self.provider('host2')
        self.placement_api.fault = lambda method, path: (
            500 if provider in path else None)
        self.assertResult(self.check(), WARNING, 'host2: GET /', '500')


class CommandTest(ResultMixin, test_ledger_process.ProcessTestCase):
    def check(self, *args, conf=None):
        process = self.run_module(
            'nfv_sched.cmd.status', '--config-file', conf or self.conf,
            'upgrade', 'check', *args)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def results(self, expected):
        code, out, err = self.check('--json')
        self.assertEqual((expected, ''), (code, err), out)
        return {check['check']: (check['result'], check['details'])
                for check in json.loads(out)['checks']}

    def change_api_database(self, *statements):
        engine = sa.create_engine(f'sqlite:///{self.directory}/api.sqlite')
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(statement)
        engine.dispose()

    def add(self, text):
        with open(self.conf, 'a') as conf:
            conf.write(text)

    def test_configuration_that_is_no_text(self):
        with open(self.conf, 'ab') as conf:
            conf.write(b'\xff\xfe')
        code, out, err = self.check()
        self.assertEqual((255, ''), (code, out), err)
        self.assertIn(
            f'nfv-sched-status: Failed to parse {self.conf}: not UTF-8 text',
            err)
        self.assertNotIn('Traceback', err)

    def test_course(self):
        self.add('[filter_scheduler]\n'
                 'enabled_filters = ComputeFilter,VSwitchPortLimitFilter\n')
        extra_specs = api_models.FlavorExtraSpecs.__table__
        self.change_api_database(
            api_models.Flavors.__table__.insert().values(
                id=1, name='packet', flavorid='packet', memory_mb=64, vcpus=1,
                root_gb=0, ephemeral_gb=0, swap=0, rxtx_factor=1,
                vcpu_weight=0, disabled=False, is_public=True),
            extra_specs.insert().values(
                flavor_id=1, key='nfv:vswitch_affinity', value='strict'))
        # A host without topology and labels, and a filter that is not found.
        results = self.results(FAILURE)
        self.assertEqual(SUCCESS, results['Options of [nfv_sched]'][0])
        self.assertEqual(FAILURE, results['Filters'][0])
        self.assertEqual(SUCCESS, results['Neutron'][0], results)
        self.assertEqual(SUCCESS, results['Placement'][0], results)
        self.assertEqual(FAILURE, results['Ledger'][0])
        result, details = results['Flavors']
        self.assertEqual(WARNING, result)
        self.assertIn('packet: unknown key nfv:vswitch_affinity, did you mean '
                      'nfv:vswitch_numa_affinity.\n', details)
        self.change_api_database(
            extra_specs.update().values(key='nfv:vswitch_numa_affinity'))
        process = self.start('--once')
        process.communicate(timeout=300)
        self.add("""
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nfv_sched.filters.all_filters
enabled_filters = ComputeFilter,VSwitchPortLimitFilter
weight_classes = nova.scheduler.weights.all_weighers
""")
        results = self.results(SUCCESS)
        self.assertEqual(SUCCESS, results['Ledger'][0])
        code, out, _err = self.check()
        self.assertEqual(0, code)
        self.assertIn('| Check: Ledger ', out)
        self.assertIn('| Result: Success ', out)
        self.placement.stop()
        self.neutron.stop()
        results = self.results(FAILURE)
        for name in ('Neutron', 'Placement'):
            self.assertEqual(FAILURE, results[name][0])
            self.assertIn('cannot be read', results[name][1])
        self.assertEqual(WARNING, results['Ledger'][0])

    def test_unusable_surroundings(self):
        code, out, err = self.check(conf='/nonexistent/nova.conf')
        self.assertEqual((255, ''), (code, out))
        self.assertEqual(1, len(err.splitlines()), err)
        self.assertIn('/nonexistent/nova.conf', err)
        process = self.run_module('nfv_sched.cmd.status', 'upgrade', 'chek')
        self.assertIn('chek', process.communicate(timeout=300)[1])
        self.assertEqual(255, process.returncode)

    def test_no_database(self):
        with open(self.conf) as conf:
            text = conf.read()
        for connection in ('sqlite:////nonexistent/api.sqlite',
                           'mysql+pymysql://nova:secret@127.0.0.1:1/nova', ''):
            with open(self.conf, 'w') as conf:
                conf.write(text.replace(
                    f'sqlite:///{self.directory}/api.sqlite', connection))
            code, out, err = self.check('--json')
            self.assertNotIn('Traceback', out + err)
            self.assertNotIn('secret', out + err)
            self.assertEqual(1, code, out)
            self.assertIn("Nova's database cannot be read", out)
            self.assertIn('Flavors could not be checked', out)

    def test_cell_down(self):
        self.change_api_database(
            api_models.CellMapping.__table__.insert().values(
                uuid=uuids.far, name='far', transport_url='none:///',
                database_connection='sqlite:////nonexistent/db',
                disabled=False))
        _result, details = self.results(WARNING)['Pinned CPUs in Placement']
        self.assertIn('Compute nodes were not looked at: cell ', details)
        self.assertIn('far', details)
