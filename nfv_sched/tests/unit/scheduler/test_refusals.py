# SPDX-License-Identifier: Apache-2.0
"""Who is told what when no host is left."""

import logging

import fixtures
from nova import context as nova_context
from nova import exception
from nova.scheduler import filters as nova_filters
from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.base import reasons
from nfv_sched.filters import nfv_topology
from nfv_sched.filters import vswitch_numa_affinity
from nfv_sched.journal import entry
from nfv_sched.ops.answers.journal import reading
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import process
from nfv_sched.scheduler import refusals
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.limits import snapshots


def reason(have='1 free'):
    return reasons.Reason(reasons.CAPACITY, 'NUMA topology', 'capacity needed',
                          have)


class TestTell(base.TestCase):

    def setUp(self):
        super().setUp()
        self.note = notes.RequestNote()
        self.note.instance = 'uuid'
        self.note.rejected = [('host1', reason()), ('host2', reason)]

    def told(self, expose, index=0):
        self.flags(expose_reasons=expose)
        try:
            refusals.report('AFilter', self.note, index)
        except exception.NoValidHost as exc:
            return exc.kwargs['reason']
        return None

    def test_tenants(self):
        for expose, text in (
                ('none', None),
                ('policy', 'NUMA topology: capacity needed, no host has it'),
                ('summary', 'NUMA topology: capacity needed, best host: 1 '
                            'free (2 hosts)'),
                ('hosts', 'host1: NUMA topology: capacity needed, 1 free; '
                          'host2: NUMA topology: capacity needed, 1 free')):
            self.assertEqual(text, self.told(expose))

    def test_later_servers(self):
        """Raising would leave what is claimed for the earlier ones."""
        for index, expose, kept in ((1, 'policy', True), (1, 'none', False),
                                    (None, 'policy', False)):
            self.assertIsNone(self.told(expose, index))
            self.assertEqual(kept, bool(self.note.tenant_reason))

    def test_log(self):
        """All is in there, whatever tenants may read."""
        self.told('none')
        self.assertIn(
            'AFilter refused the last host for server uuid: NUMA topology: '
            'capacity needed, best host: 1 free (2 hosts)', self.log.output)

    def test_hosts_in_the_log(self):
        logging.getLogger('nfv_sched').setLevel(logging.INFO)
        self.told('none')
        self.assertNotIn('Refused hosts', self.log.output)
        logging.getLogger('nfv_sched').setLevel(logging.DEBUG)
        self.told('none')
        self.assertIn('Refused hosts: host1: NUMA topology', self.log.output)


class TestResolve(base.TestCase):

    def test_resolve(self):
        for lazy in (reason(), reason):
            self.assertEqual(reason(), refusals.resolve(lazy))

    def test_one_that_cannot_be_worked_out(self):
        def fail():
            raise ZeroDivisionError

        self.assertEqual('NUMA topology: capacity needed, none',
                         str(refusals.resolve(fail)))
        self.assertIn('cannot be worked out', self.log.output)


class TestJournal(base.TestCase):

    def setUp(self):
        super().setUp()
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.addCleanup(process.STATE.reset)
        self.flags(decision_journal=self.directory)
        self.handler = nova_filters.HostFilterHandler()
        self.filters = [
            nfv_topology.NFVTopologyFilter(),
            vswitch_numa_affinity.VSwitchNUMAAffinityFilter()]
        self.hosts = [clouds.host('full', free={0: 1, 1: 1}),
                      clouds.host('elsewhere', free={0: 4, 1: 1}),
                      clouds.host('unlabelled', switch=None)]
        self.spec = clouds.spec('strict')
        self.spec.instance_uuid = uuids.server

    def refuse(self, index=0):
        try:
            left = self.handler.get_filtered_objects(
                self.filters, self.hosts, self.spec, index)
        except exception.NoValidHost:
            left = []
        self.assertEqual([], left)

    def written(self):
        return reading.read(self.directory).refusals

    def test_content(self):
        nova_context.RequestContext(request_id='req-1')
        self.spec.flavor.name = 'router'
        self.refuse()
        refusal, = self.written()
        self.assertEqual(
            (uuids.server, (), 'req-1', 'VSwitchNUMAAffinityFilter',
             'router', 'strict'),
            (refusal.server, refusal.before, refusal.request, refusal.filter,
             refusal.flavor.name,
             refusal.flavor.extra_specs['nfv:vswitch_numa_affinity']))
        self.assertEqual(
            (entry.Pass(filter='NFVTopologyFilter', hosts=3, left=2),
             entry.Pass(filter='VSwitchNUMAAffinityFilter', hosts=2, left=0)),
            refusal.passes)
        self.assertEqual(
            {'full': 'NFVTopologyFilter: NUMA topology: 2 dedicated CPUs on '
                     'one NUMA node needed, 1 free',
             'elsewhere': 'VSwitchNUMAAffinityFilter: '
                          'nfv:vswitch_numa_affinity=strict: 2 dedicated CPUs '
                          'on one NUMA node with the virtual switch needed, '
                          '1 free'},
            {host: f'{reason.filter}: {reason}' for reason in refusal.reasons
             for host in reason.hosts if host != 'unlabelled'})
        self.assertEqual('', self.log_of_journal())

    def log_of_journal(self):
        return ''.join(line for line in self.log.output.splitlines()
                       if 'journal' in line)

    def test_off(self):
        self.flags(decision_journal=None)
        self.refuse()
        self.assertEqual((), self.written())

    def test_passed(self):
        """Who finds a host is not in there."""
        self.hosts.append(clouds.host('free'))
        self.assertEqual(1, len(self.handler.get_filtered_objects(
            self.filters, self.hosts, self.spec)))
        self.assertEqual((), self.written())

    def test_simulated(self):
        notes.note_of(self.spec).use(snapshots.Lookups())
        self.refuse()
        self.assertEqual((), self.written())

    def test_alternates(self):
        """That there are none for a server that was placed is no refusal."""
        full, self.hosts = self.hosts, [clouds.host('free')]
        self.handler.get_filtered_objects(
            self.filters, self.hosts, self.spec, 0)
        self.hosts = full
        self.spec.instance_uuid = uuids.second
        self.refuse(1)
        self.refuse(1)
        refusal, = self.written()
        self.assertEqual((uuids.second, (uuids.server,)),
                         (refusal.server, refusal.before))

    def test_nothing_else_suffers(self):
        self.useFixture(fixtures.MockPatchObject(
            refusals.writer, 'write', side_effect=ZeroDivisionError))
        self.refuse()
        self.assertIn('A decision is not in the decision journal',
                      self.log.output)
