# SPDX-License-Identifier: Apache-2.0
"""Accept the names that commands had before 1.0.

``nfv-sched --help`` does not list them; ``openstack nfv --help`` does, as
cliff only looks at names there.  They write what replaces them to stderr.
"""

import argparse

from nfv_sched.cmd import probe
from nfv_sched.ops.audit import command as audit
from nfv_sched.ops.cli import base
from nfv_sched.ops.cloud import simulation_command
from nfv_sched.ops.cloud import source
from nfv_sched.ops.explain import command as explain
from nfv_sched.ops.hosts import limits_command
from nfv_sched.ops.journal import command as journal
from nfv_sched.ops.metadefs import command as metadefs
from nfv_sched.ops.plans import defrag_command
from nfv_sched.ops.plans import drain_command
from nfv_sched.ops.plans import failover_command
from nfv_sched.ops.rebalance import command as rebalance


class _OldName:
    """Mixin of a command under its old name; before the command's class."""

    #: cliff does not list such a command.
    deprecated = True

    #: Words of the command of nfv-sched that replaces it, if one does.
    new_name = ''

    #: What replaces it, if none does.
    successor = ''

    def get_description(self) -> str:
        """Return what --help says; called by cliff."""
        return f'Will be removed in the next release; use {self._in_place()}.'

    def _in_place(self) -> str:
        """Return what replaces the command, also as ``openstack nfv``."""
        if not self.new_name:
            return self.successor
        in_client = self.app is not None and (
            self.app.NAME != base.NFVSched.NAME)
        return f'"{"nfv " if in_client else ""}{self.new_name}"'

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Write the new name to stderr and run the command."""
        self.app.stderr.write(
            f'warning: "{self.cmd_name}" will be removed in the next '
            f'release; use {self._in_place()}\n')
        return super().run(parsed_args)


class OldAudit(_OldName, audit.AuditCloud):
    new_name = 'cloud audit'


class OldDefragPlan(_OldName, defrag_command.DefragCloud):
    new_name = 'cloud defrag'


class OldDrainPlan(_OldName, drain_command.DrainHost):
    new_name = 'host drain'


class OldExplainFlavor(_OldName, explain.ExplainFlavor):
    new_name = 'flavor explain'


class OldExplainServer(_OldName, explain.ExplainServer):
    new_name = 'server explain'


class OldFailoverCheck(_OldName, failover_command.FailoverCloud):
    new_name = 'cloud failover'


class OldJournalList(_OldName, journal.ListJournal):
    new_name = 'server explain --then'


class OldLedgerProbe(_OldName, source.ErrorMixin, base.Command):
    """Test whether Placement grants exactly what the ledger has."""

    successor = '"nfv-sched-status ledger probe"'

    epilog = """\
examples:
  nfv-sched ledger probe --room 7

""" + probe.EXIT_CODES

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        probe.add_options(parser, capacity='--room')
        base.add_configuration(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.claims <= parsed_args.capacity:
            return self.print_error('--claims must be more than --room')
        # Imported here so that --help does not wait for Nova.
        from nfv_sched.nova import scheduler
        source.configure(base.configuration(parsed_args), databases=False)
        return probe.run(
            scheduler.CONF, parsed_args,
            lambda line: self.app.stdout.write(f'{line}\n'), self.print_error)


class OldLimitsShow(_OldName, limits_command.ShowLimits):
    new_name = 'host list'


class OldMetadefsSave(_OldName, metadefs.SaveMetadefs):
    successor = 'the files in etc/nfv_sched/metadefs'


class OldRebalancePlan(_OldName, rebalance.RebalanceAgent):
    new_name = 'agent rebalance'


class OldSimulate(_OldName, simulation_command.RunSimulation):
    new_name = 'simulation run'
