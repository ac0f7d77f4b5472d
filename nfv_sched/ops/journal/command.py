# SPDX-License-Identifier: Apache-2.0
"""Find the decision journal.

The command ``nfv-sched journal list`` is an old name of ``server explain
--then``.
"""

import argparse

from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud import source
from nfv_sched.ops.journal import document as journal_document
from nfv_sched.ops.journal import journal
from nfv_sched.ops.journal import rendering

_EPILOG = f"""\
Reads the directory of [nfv_sched] decision_journal, on the host of
nova-scheduler and by a user who may read its files. With several hosts of
nova-scheduler, each has the refusals of its own.

examples:
  nfv-sched server explain --then

{source.EXIT_CODES}"""


class ListJournal(source.ErrorMixin, base.Lister):
    """List servers that found no host, and why.

    One row for each server for which Nova found no host, the oldest first:
    how many hosts the first recorded filter was given, which filter removed
    the last one, and the reason that most of them were refused for.
    """

    epilog = _EPILOG
    least_important = rendering.LEAST_IMPORTANT

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--server', metavar='UUID', help='only refusals of this server')
        parser.add_argument(
            '--full', action='store_true',
            help='all reasons, with the hosts that each is of')
        parser.add_argument(
            '--dir', dest='directory', metavar='DIR',
            help='directory of the journal (default: that of the '
                 'configuration)')
        base.add_configuration(parser)
        return parser

    def take_action(self, parsed_args):
        directory = parsed_args.directory or configured(parsed_args)
        try:
            self._journal = journal.read(directory, parsed_args.server)
        except journal.JournalError as exc:
            raise source.CloudUnreadError(str(exc)) from exc
        return rendering.COLUMNS, [rendering.row(refusal, parsed_args.full)
                                   for refusal in self._journal.refusals]

    def document(self, column_names, data):
        return documents.Document(
            journal_document.refusals(self._journal), ('refusals',))

    def run(self, parsed_args) -> int:
        self._journal = journal.JournalContent(())
        code = super().run(parsed_args)
        self.app.stderr.write(rendering.missing(
            self._journal.lost, self._journal.removed))
        return max([code, *map(self.print_error, self._journal.unread)])


def configured(parsed_args: argparse.Namespace) -> str:
    """Return the directory of the journal in the configuration.

    :param parsed_args: arguments of a parser with the configuration options
    :raises source.CloudUnreadError: if none is set, or the configuration
        cannot be read
    """
    source.configure(base.configuration(parsed_args), databases=False)
    path = directory()
    if not path:
        raise source.CloudUnreadError(
            'there is no journal: [nfv_sched] decision_journal is not set')
    return path


def directory() -> str | None:
    """Return the journal's directory in the configuration that was read.

    :returns: None if there is no journal
    """
    from nfv_sched import conf
    from nfv_sched.nova import database
    conf.register_opts(database.CONF)
    return database.CONF.nfv_sched.decision_journal
