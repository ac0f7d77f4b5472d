# SPDX-License-Identifier: Apache-2.0
"""Keep the order of the actions of a solution."""

from watcher.common import utils
from watcher.decision_engine.planner import weight
from watcher import objects

#: Entry point of the planner.
NAME = 'nfv_in_order'


class InOrderPlanner(weight.WeightPlanner):
    """Planner of an action plan in which each action waits for the last one.

    Watcher's own sort actions by their type, or let several of a type run at
    once: a server may then reach a host before another has left it.
    """

    def get_sorted_actions_by_weight(self, context, action_plan, solution):
        return [(self.config.weights[each['action_type']], [
            objects.Action(context, uuid=utils.generate_uuid(), parents=[],
                           action_plan_id=action_plan.id, **each)])
                for each in solution.actions]
