# SPDX-License-Identifier: Apache-2.0
"""Make a plan for agents anew that was not carried out to its end."""

from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.answers.rebalance import document
from nfv_sched.ops.answers.rebalance import freed_capacity
from nfv_sched.ops.answers.rebalance import levelling
from nfv_sched.ops.answers.rebalance import rendering
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.ops.simulator import progress


def plan_again(plan: document.Rebalance,
               cloud: snapshot.Cloud) -> documents.Document:
    """Return a new plan with the aim of another.

    :param cloud: the cloud as it is now
    :raises CloudUnreadError: if the agents of Neutron were not read
    """
    if cloud.network_agents is None:
        raise source.CloudUnreadError('the agents of Neutron are not known')
    first = plan.plans[0] if plan.plans else None
    plans = levelling.plans(
        cloud, document.kinds(plan),
        threshold=levelling.THRESHOLD if first is None else first.threshold,
        by_ports=any(each.levels == 'ports' for each in plan.plans),
        room=view.free_ports(cloud))
    with progress.shown() as update:
        gain = freed_capacity.gain(
            cloud, plans, lambda done, total: update(done, total, 'flavors'))
    return documents.Document(rendering.document(plans, gain), ('moves',))
