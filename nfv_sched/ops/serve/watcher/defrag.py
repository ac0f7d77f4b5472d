# SPDX-License-Identifier: Apache-2.0
"""The strategy ``nfv_defrag``."""

import typing as ty

from nfv_sched.ops.serve.watcher import base
from nfv_sched.ops.serve.watcher import goals


class NFVDefrag(base.NFVStrategy):
    """Make room for servers of a flavor, as ``nfv-sched cloud defrag`` plans.

    Either all of its moves are in the action plan, or there is none.
    """

    NAME = 'nfv_defrag'
    DISPLAY_NAME = 'Make room for a flavor with regard to NUMA nodes'
    GOAL = goals.CapacityGoal.NAME

    REQUIRED = ('flavor',)
    PARAMETERS = {
        'flavor': {
            'description': 'Name of the flavor of the new servers.',
            'type': 'string', 'minLength': 1},
        'count': {
            'description': 'Number of the new servers.',
            'type': 'integer', 'minimum': 1, 'default': 1},
        **base.moves(10),
        'like': {
            'description': 'UUID or name of a server whose ports the new ones '
                           'have.',
            'type': 'string', 'minLength': 1},
        'networks': {
            'description': 'Networks of the new servers: name or ID, with '
                           ',vnic-type=T if need be.', **base.PATTERNS},
        **base.COLD_FOR_VFS}

    def do_execute(self, audit: ty.Any = None) -> None:
        plan, document = self.plan('cloud', 'defrag')
        self.add_all(plan)
        self.solution.set_efficacy_indicators(
            servers_wanted=document['wanted'],
            servers_before=document['fits_before'],
            servers_after=document['fits_after'])
