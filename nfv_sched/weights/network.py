# SPDX-License-Identifier: Apache-2.0
"""Define the base class of the weighers of network load."""

import abc

from oslo_log import log as logging

from nfv_sched.scheduler import limits_note
from nfv_sched.scheduler.limits_note import NetworkNote
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import refusals
from nfv_sched.weights import multiplier

LOG = logging.getLogger(__name__)


class NetworkLoadWeigher(multiplier.MultipliedWeigher):
    """A weigher by the network load of a host; less load weighs more.

    Nova normalises the weights, as those of its own resource weighers: the
    least loaded host weighs 1 and the most loaded 0, times the multiplier.
    The service of the ledger publishes the loads.  A host of which it has
    published none weighs as the most loaded one.
    """

    def __init__(self):
        super().__init__()
        refusals.watch()

    @abc.abstractmethod
    def load(self, network: NetworkNote, host_state) -> float | None:
        """Return the load of a host in its unit; None if it is not known."""

    def weigh_hosts(self, weighed_obj_list, weight_properties):
        loads: list[float | None] = []
        self.read_multipliers()
        try:
            note = notes.note_of(weight_properties)
            network = limits_note.for_request(
                note, note.read(weight_properties))
            loads = [self.load(network, weighed.obj)
                     for weighed in weighed_obj_list]
        except Exception:
            LOG.exception('Hosts cannot be weighed by their network load')
        most = max((load for load in loads if load is not None), default=None)
        if most is None:
            # normalize() makes 0 of equal weights: no host is preferred.
            return [0.0] * len(weighed_obj_list)
        return [-(most if load is None else load) for load in loads]
