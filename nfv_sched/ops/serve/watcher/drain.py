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

    @classmethod
    def get_schema(cls) -> dict[str, ty.Any]:
        return {
            'properties': {
                'maintenance_node': {
                    'description': 'Name of the compute host to be emptied.',
                    'type': 'string', 'minLength': 1},
                'servers': {
                    'description': 'UUIDs of the only servers to be moved; '
                                   'the host is not disabled then.',
                    'type': 'array', 'items': {'type': 'string'}},
                **base.COLD_FOR_VFS,
            },
            'required': ['maintenance_node'],
        }

    def do_execute(self, audit: ty.Any = None) -> None:
        host = self.parameter('maintenance_node')
        node = self.node(host)
        plan, _document = self.plan(
            'host', 'drain',
            *base.options('server', self.parameter('servers')),
            *base.options('cold-for-vfs', self.parameter('cold_for_vfs')),
            '--', host)
        for clause in (*plan.warnings, *plan.left_undone):
            self.add_note(clause)
        moves = []
        for move in plan.moves:
            obstacle = self.obstacle(move)
            if obstacle is None:
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
