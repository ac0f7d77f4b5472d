#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""Who is told what when no host is left."""

import logging

from nova import exception

from nfv_sched import reasons
from nfv_sched import refusals
from nfv_sched import request
from nfv_sched.tests import base


def reason(have='1 free'):
    return reasons.Reason(reasons.CAPACITY, 'NUMA topology', 'room needed',
                          have)


class TestTell(base.TestCase):

    def setUp(self):
        super().setUp()
        self.note = request.RequestNote()
        self.note.instance = 'uuid'
        self.note.rejected = [('host1', reason()), ('host2', reason)]

    def told(self, expose, index=0):
        """What the tenant reads; None if that is nothing."""
        self.flags(expose_reasons=expose)
        try:
            refusals.tell('AFilter', self.note, index)
        except exception.NoValidHost as exc:
            return exc.kwargs['reason']
        return None

    def test_tenants(self):
        for expose, text in (
                ('none', None),
                ('policy', 'NUMA topology: room needed, no host has it'),
                ('summary', 'NUMA topology: room needed, best host: 1 free '
                            '(2 hosts)'),
                ('hosts', 'host1: NUMA topology: room needed, 1 free; '
                          'host2: NUMA topology: room needed, 1 free')):
            self.assertEqual(text, self.told(expose))

    def test_later_servers(self):
        """Raising would leave what is claimed for the earlier ones."""
        for index in (1, None):
            self.assertIsNone(self.told('hosts', index))

    def test_log(self):
        """All is in there, whatever tenants may read."""
        self.told('none')
        self.assertIn(
            'AFilter refused the last host for server uuid: NUMA topology: '
            'room needed, best host: 1 free (2 hosts)', self.log.output)

    def test_hosts_in_the_log(self):
        """If somebody debugs."""
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

        self.assertEqual('NUMA topology: room needed, none',
                         str(refusals.resolve(fail)))
        self.assertIn('cannot be worked out', self.log.output)
