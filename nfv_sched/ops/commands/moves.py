# SPDX-License-Identifier: Apache-2.0
"""Define the base of commands that plan moves of servers."""

import argparse
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

from nfv_sched.ops.cli import documents
from nfv_sched.ops.commands import plan_execution
from nfv_sched.ops.commands import planning
from nfv_sched.ops.commands import replanning


class MovePlanCommand(planning.PlanMixin, planning.PlanCommand):
    """Base of the commands that plan moves of servers."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser; subclasses add their options."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--cold-for-vfs', action='store_true',
            help='migrate a server cold if Nova would detach VFs from it '
                 'during a live migration')
        return parser

    def plan_again(
        self, parsed_args: argparse.Namespace,
        saved: plan_execution.SavedPlan,
        failed: Mapping[tuple[str, str], str], finished: Collection[int],
    ) -> documents.Document:
        """Return a new plan of the cloud as it is now."""
        cloud = self.cloud(parsed_args, newer=self._print)
        self.check_complete()
        return replanning.plan_again(
            saved.document, cloud, failed, saved.plan.round, finished)

    def misplaced(
        self, parsed_args: argparse.Namespace, document: ty.Any,
        uuids: Collection[str],
    ) -> tuple[list[str], list[str]]:
        """Return which servers are not placed as strict policies say."""
        cloud = self.current_cloud(parsed_args)
        # Importing Nova takes seconds.
        from nfv_sched.ops.answers.plans import placed_servers
        return placed_servers.misplaced(cloud, uuids)

    def take_action(self, parsed_args: argparse.Namespace) -> tuple:
        """Return columns and rows, and save the plan; called by cliff."""
        result = super().take_action(parsed_args)
        self.save(parsed_args, self._output.document)
        return result

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str],
                       data: Iterable) -> int:
        """Print the plan and, with ``--run``, carry it out."""
        code = super().produce_output(parsed_args, column_names, data)
        self.use_saved(parsed_args)
        return code
