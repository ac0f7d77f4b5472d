# SPDX-License-Identifier: Apache-2.0
"""The strategies ``nfv_spread`` and ``nfv_consolidate``."""

import datetime
import typing as ty

from oslo_utils import timeutils
from watcher.common import context
from watcher import objects

from nfv_sched.ops.serve.watcher import base
from nfv_sched.ops.serve.watcher import goals

#: Default of the parameter "cooldown", in seconds.
_COOLDOWN = 3600


class NFVRearrange(base.NFVStrategy):
    """Base; either all moves are in the action plan, or there are none."""

    OTHER_PARAMETERS = {
        'cooldown': {
            'description': 'Seconds for which a server stays that an action '
                           'of Watcher has migrated.',
            'type': 'integer', 'minimum': 0, 'default': _COOLDOWN}}

    def rearrange(self, command: str) -> tuple[dict[str, ty.Any], int]:
        """Add the moves of a plan; return its document, and their number."""
        plan, document = self.plan('cloud', command, *[
            f'--avoid={uuid}' for uuid in self._recently_moved()])
        self.add_all(plan)
        return document, len(plan.moves)

    def _recently_moved(self) -> set[str]:
        since = timeutils.utcnow() - datetime.timedelta(
            seconds=self.input_parameters.get('cooldown', _COOLDOWN))
        return {
            action.input_parameters['resource_id']
            for action in objects.Action.list(
                context.make_context(is_admin=True), filters={
                    'state': objects.action.State.SUCCEEDED,
                    'updated_at__gte': since})
            if action.action_type == self.MIGRATION}


class NFVSpread(NFVRearrange):
    """Use NUMA nodes evenly, as ``nfv-sched cloud spread`` plans."""

    NAME = 'nfv_spread'
    DISPLAY_NAME = 'Spread servers over NUMA nodes'
    GOAL = goals.NodeBalanceGoal.NAME
    PARAMETERS = {
        'points': {
            'description': 'Percentage points by which a NUMA node may be in '
                           'use more or less than all of them together.',
            'type': 'integer', 'minimum': 1},
        **base.moves(20), **base.COLD_FOR_VFS}

    def do_execute(self, audit: ty.Any = None) -> None:
        document, _moves = self.rearrange('spread')
        self.solution.set_efficacy_indicators(
            imbalance_before=document['before'],
            imbalance_after=document['after'])


class NFVConsolidate(NFVRearrange):
    """Empty hosts, as ``nfv-sched cloud consolidate`` plans."""

    NAME = 'nfv_consolidate'
    DISPLAY_NAME = 'Empty hosts with regard to NUMA nodes and devices'
    GOAL = 'server_consolidation'
    PARAMETERS = {
        'hosts': {
            'description': 'Number of hosts to empty; as many as possible '
                           'without it.',
            'type': 'integer', 'minimum': 1},
        **base.moves(20), **base.COLD_FOR_VFS}

    def do_execute(self, audit: ty.Any = None) -> None:
        document, moves = self.rearrange('consolidate')
        self.solution.set_efficacy_indicators(
            compute_nodes_count=len(
                self.compute_model.get_all_compute_nodes()),
            released_compute_nodes_count=(
                document['after'] - document['before']),
            instance_migrations_count=moves)
