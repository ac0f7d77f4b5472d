# SPDX-License-Identifier: Apache-2.0
"""The strategy ``nfv_drain``."""

import typing as ty

from watcher.decision_engine.model import element
from watcher.decision_engine.strategy.strategies import base as watcher_base

from nfv_sched.ops.serve.watcher import base


class NFVDrain(base.NFVStrategy):
    """Empty a compute node, as ``nfv-sched host drain`` plans it.

    A server that cannot be moved is named by an action ``nop``.
    """

    NAME = 'nfv_drain'
    DISPLAY_NAME = 'Empty a host with regard to NUMA nodes and devices'
    GOAL = 'cluster_maintaining'

    REQUIRED = ('maintenance_node',)
    PARAMETERS = {
        'servers': {
            'description': 'UUIDs of the only servers to be moved; the host '
                           'is not disabled then.',
            'type': 'array', 'items': {'type': 'string'}},
        **base.COLD_FOR_VFS}

    # The argument of the command, not an option.
    OTHER_PARAMETERS = {
        'maintenance_node': {
            'description': 'Name of the compute host to be emptied.',
            'type': 'string', 'minLength': 1}}

    def do_execute(self, audit: ty.Any = None) -> None:
        host = self.input_parameters['maintenance_node']
        node = self.node(host)
        plan, _document = self.plan('host', 'drain', '--', host)
        self.add_clauses(plan)
        moves = []
        for move in plan.moves:
            if (obstacle := self.obstacle(move)) is None:
                moves.append(move)
            else:
                self.add_note(f'{move} ({move.id}) stays on {host}: '
                              f'{obstacle}')
        if plan.closed_hosts:
            self.solution.add_action(
                action_type='change_nova_service_state',
                resource_id=node.uuid, input_parameters={
                    'state': element.ServiceState.DISABLED.value,
                    'disabled_reason': watcher_base.
                    HostMaintenanceBaseStrategy.REASON_FOR_MAINTAINING,
                    'resource_name': node.hostname})
        self.add_moves(moves)
