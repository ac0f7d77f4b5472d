# SPDX-License-Identifier: Apache-2.0
"""Plan with ``nfv-sched``, in a process of its own."""

import abc
from collections.abc import Iterable, Iterator, Mapping, Sequence
import json
import os
import sysconfig
import typing as ty

from oslo_concurrency import processutils
from oslo_config import cfg
from oslo_log import log
from watcher.common import exception
from watcher.decision_engine.model import element
from watcher.decision_engine.strategy.strategies import base

from nfv_sched.base import files
from nfv_sched.base import strings
from nfv_sched.ops.cli.base import FINDINGS
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.run import values
from nfv_sched.ops.serve.watcher import goals
from nfv_sched.ops.serve.watcher import planner

LOG = log.getLogger(__name__)


class PlanningError(exception.WatcherException):
    """No plan, or one that Watcher cannot carry out; the message says why."""


#: The parameter "cold_for_vfs" of strategies that move servers.
COLD_FOR_VFS: Mapping[str, Mapping[str, ty.Any]] = {'cold_for_vfs': {
    'description': 'Migrate a server cold if Nova would detach VFs from it '
                   'during a live migration.',
    'type': 'boolean', 'default': False}}
PATTERNS: Mapping[str, ty.Any] = {
    'type': 'array', 'items': {'type': 'string', 'minLength': 1}}


def moves(most: int) -> dict[str, Mapping[str, ty.Any]]:
    """Return the parameters "max_moves" and "avoid".

    :param most: default of the maximum
    """
    return {
        'max_moves': {
            'description': 'Maximum number of migrations.',
            'type': 'integer', 'minimum': 1, 'default': most},
        'avoid': {
            'description': 'Patterns for names of servers that are not moved, '
                           'and of hosts that none leaves or reaches.',
            **PATTERNS}}


class NFVStrategy(goals.NamedMixin, base.BaseStrategy, metaclass=abc.ABCMeta):
    """Base of the strategies.

    :cvar PARAMETERS: name of each parameter -> its schema
    :cvar OTHER_PARAMETERS: the same, of those that are not its options
    :cvar REQUIRED: names of those that an audit must have
    """

    GOAL: str
    PARAMETERS: Mapping[str, Mapping[str, ty.Any]]
    OTHER_PARAMETERS: Mapping[str, Mapping[str, ty.Any]] = {}
    REQUIRED: Sequence[str] = ()

    def __init__(self, config: ty.Any, osc: ty.Any = None):
        super().__init__(config, osc)
        self.planner = planner.NAME

    @classmethod
    def get_goal_name(cls) -> str:
        return cls.GOAL

    @classmethod
    def get_schema(cls) -> dict[str, ty.Any]:
        return {'properties': {**cls.PARAMETERS, **cls.OTHER_PARAMETERS},
                **({'required': list(cls.REQUIRED)} if cls.REQUIRED else {})}

    @classmethod
    def get_config_opts(cls) -> list[cfg.Opt]:
        return [
            cfg.ListOpt(
                'command',
                default=[os.path.join(
                    sysconfig.get_path('scripts'), 'nfv-sched')],
                sample_default='nfv-sched',
                help='Command nfv-sched, with words before it such as '
                     'sudo,-u,nova, if Watcher may not read nova.conf.'),
            cfg.ListOpt(
                'nova_config_files', default=[],
                help="Configuration of nova-scheduler, which names Nova's "
                     'databases. If neither it nor a snapshot is set: '
                     'nova.conf where Nova looks for it.'),
            cfg.StrOpt(
                'snapshot',
                help='File that "nfv-sched snapshot save" writes regularly. '
                     "It is read instead of Nova's databases."),
        ]

    def pre_execute(self) -> None:
        """Check that Watcher has a model of the cloud; called by Watcher."""
        self._pre_execute()

    def post_execute(self) -> None:
        """Do nothing more; called by Watcher."""

    def plan(
        self, *words: str, account: Mapping[str, str] | None = None,
    ) -> tuple[values.MovePlan, dict[str, ty.Any]]:
        """Run a command that plans, with the parameters of the audit.

        :param words: the command with other options
        :param account: OS_* variables, if the API is read
        :returns: the plan, and its document
        :raises PlanningError: if there is no plan, or it may be wrong, as a
            part of the cloud could not be read
        """
        where = [] if account is not None else [
            *(f'--config-file={path}'
              for path in self.config.nova_config_files),
            *([f'--from={self.config.snapshot}']
              if self.config.snapshot else [])]
        command = [*self.config.command, *words[:2], '-f', 'json', *where,
                   *plan_file.options_of({
                       name: self.input_parameters.get(name)
                       for name in self.PARAMETERS}), *words[2:]]
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith('OS_')}
        try:
            content, messages = processutils.execute(
                *command, check_exit_code=[0, FINDINGS], binary=True,
                env_variables={**environment, 'LC_ALL': 'C.UTF-8',
                               **(account or {})})
        except processutils.ProcessExecutionError as exc:
            raise PlanningError(
                f'nfv-sched {" ".join(words[:2])}: '
                f'{strings.one_line(exc.stderr) or exc.exit_code}') from exc
        except OSError as exc:
            raise PlanningError(f'{command[0]}: {exc.strerror}') from exc
        for line in messages.decode(errors='replace').splitlines():
            LOG.info('nfv-sched: %s', line)
        with files.naming(command[0], PlanningError):
            return (plan_file.moves_of(plan_file.parse(content)),
                    json.loads(content))

    def add_note(self, text: str) -> None:
        self.solution.add_action(
            action_type='nop', input_parameters={
                'message': strings.line(text)})

    def node(self, name: str) -> element.ComputeNode:
        try:
            return self.compute_model.get_node_by_name(name)
        except exception.ComputeNodeNotFound as exc:
            raise PlanningError(
                f'{name} is not in the scope of the audit, or not in '
                "Watcher's data model") from exc

    def obstacle(self, move: values.Move) -> str | None:
        """Return why Watcher does not make a move; None if it does."""
        try:
            instance = self.compute_model.get_instance_by_uuid(move.id)
            for name in (move.source, move.destination):
                self.node(name)
        except exception.InstanceNotFound:
            return "it is not in Watcher's data model"
        except PlanningError as exc:
            return str(exc)
        if instance.watcher_exclude:
            return 'the scope of the audit excludes it'
        if move.kind == 'live' and (
                instance.state == element.InstanceState.PAUSED.value):
            return 'it is paused, and Watcher moves only active servers live'
        return None

    def add_all(self, plan: values.MovePlan) -> None:
        """Add the moves of a plan, which help only together.

        :raises PlanningError: if Watcher does not make one of them
        """
        obstacles = [
            f'{move} ({move.id}) cannot be moved: {obstacle}'
            for move in plan.moves
            if (obstacle := self.obstacle(move)) is not None]
        if obstacles:
            raise PlanningError('; '.join(obstacles))
        self.add_clauses(plan)
        self.add_moves(plan.moves)

    def add_clauses(self, plan: values.MovePlan) -> None:
        for clause in (*plan.warnings, *plan.left_undone):
            self.add_note(clause)

    def add_moves(self, moves: Iterable[values.Move]) -> None:
        moves = list(moves)
        for move in moves:
            if move.vfs_detached:
                self.add_note(f'{move} ({move.id}): ' + values.how(
                    f'{move.kind} migration', move.vfs_detached))
        if any(move.vfs_detached for move in moves):
            self.add_note(values.VFS_DETACHED)
        for seconds, move in _with_pauses(moves):
            if seconds:
                # NOTE: add_action() drops an action that equals another one.
                self.solution.actions.append({
                    'action_type': 'sleep',
                    'input_parameters': {'duration': seconds}})
            self.solution.add_action(
                action_type=self.MIGRATION, resource_id=move.id,
                input_parameters={
                    'migration_type': move.kind,
                    'source_node': move.source,
                    'destination_node': move.destination,
                    'resource_name': str(move)})


def _with_pauses(
        moves: Iterable[values.Move]) -> Iterator[tuple[int, values.Move]]:
    """Yield moves, each with the seconds to wait before it.

    Nova frees the room of a server on its old host a little after the move.
    """
    sources: set[str] = set()
    migrated: set[str] = set()
    for move in moves:
        seconds = 0
        if not migrated.isdisjoint(move.related):
            seconds = values.SYNCED_SECONDS
            migrated.clear()
        elif move.destination in sources:
            seconds = values.FREED_SECONDS
        if seconds:
            sources.clear()
        sources.add(move.source)
        if move.kind == 'live':
            migrated.add(move.id)
        yield seconds, move
