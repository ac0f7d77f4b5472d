# SPDX-License-Identifier: Apache-2.0

from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base

_Kind = snapshot.MissingKind


class MissingTest(base.TestCase):

    def test_sentences(self):
        missing = {'cell': 'far', 'hosts': ('h2', 'h1'),
                   'uuids': ('b', 'a', 'c'), 'text': '{no}: x'}
        only_text = {_Kind.CLASS, _Kind.OTHER}
        for kind, fields, sentence in (
                (_Kind.NO_CELLS, {}, 'There are no cells'),
                (_Kind.CELL, {'cell': 'far', 'uuids': ('c',)},
                 'Cell c(far) cannot be read: no'),
                (_Kind.SILENT_CELL, {'cell': 'c', 'uuids': ('c',)},
                 'Cell c does not answer in time'),
                (_Kind.HOST, {'hosts': ('h1',)}, 'Host h1 is left out, its '
                 'record is malformed: no'),
                (_Kind.SERVER, {'uuids': ('a',)}, 'Server a is left out, its '
                 'record is malformed: no'),
                (_Kind.REQUEST_SPEC, {'uuids': ('a',)}, 'What was asked for '
                 'server a is left out, its record is malformed: no'),
                (_Kind.MIGRATION, {'uuids': ('a',)}, 'Migration a is left '
                 'out, its record is malformed: no'),
                (_Kind.NEUTRON, {}, 'Neutron cannot be read: no'),
                (_Kind.NETWORK_AGENTS, {},
                 "Neutron's agents cannot be read: no"),
                (_Kind.PLACEMENT, {}, 'Placement cannot be read: no'),
                (_Kind.PROVIDERS, {'uuids': ('a', 'b')}, 'Placement cannot '
                 'be read for 2 hosts, such as: no'),
                (_Kind.SILENT_HOSTS, {'hosts': ('h2', 'h1')}, '2 hosts and '
                 'all servers there are left out: cells do not answer, such '
                 'as that of h1'),
                *[(kind, {}, 'no') for kind in only_text]):
            self.assertEqual(sentence, str(snapshot.Missing(
                kind=kind, text='no', **fields)))
        # Whatever a file has.
        for kind in _Kind:
            str(snapshot.Missing(kind=kind, **missing))
            str(snapshot.Missing(kind=kind))

    def test_without_error(self):
        """As it is after names were replaced."""
        self.assertEqual('Cell far cannot be read', str(
            snapshot.Missing(kind=_Kind.CELL, cell='far')))
        self.assertEqual(
            {'Something is left out, and the snapshot does not say what'},
            {str(snapshot.Missing(kind=kind)) for kind in (
                _Kind.CLASS, _Kind.OTHER)})

    def test_unread(self):
        cloud = snapshot.Cloud(taken='', missing=(
            snapshot.Missing(kind=_Kind.SERVER, uuids=('a',)),
            snapshot.Missing(kind=_Kind.SERVER, uuids=('b', 'c')),
            snapshot.Missing(kind=_Kind.MIGRATION, uuids=('d',)),
            snapshot.Missing(kind=_Kind.OTHER, text='e')))
        self.assertEqual({'a', 'b', 'c'}, cloud.unread(_Kind.SERVER))
        self.assertEqual({'a', 'b', 'c', 'd'}, cloud.unread(
            _Kind.SERVER, _Kind.MIGRATION))
        self.assertEqual(set(), cloud.unread(_Kind.OTHER))
