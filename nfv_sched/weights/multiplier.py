# SPDX-License-Identifier: Apache-2.0
"""Define the base class of all weighers: multipliers, and those in shadow."""

import abc
import functools
import math
import threading

from nova.scheduler import weights
from oslo_log import log as logging

from nfv_sched.limits import options
from nfv_sched.nova import scheduler
from nfv_sched.scheduler import gmr
from nfv_sched.scheduler.notes import note_of
from nfv_sched.scheduler import shadow
from nfv_sched.scheduler import shadow_outcomes

LOG = logging.getLogger(__name__)

CONF = scheduler.CONF


class MultipliedWeigher(weights.BaseHostWeigher, metaclass=abc.ABCMeta):
    """A weigher with a multiplier that aggregates can override.

    Nova calls :meth:`weigh_objects` with all hosts and then
    :meth:`weight_multiplier` with each.  If the weigher is in shadow, that is
    0.

    Weighers are shared by the threads of a process, and Nova makes all these
    calls of a request in one thread.  So the multipliers of a request are kept
    for its thread, until the next request there.
    """

    #: Name of the option, and of the aggregate metadata.
    multiplier: str
    #: Section of nova.conf with the option.
    group = 'nfv_sched'

    def __init__(self):
        super().__init__()
        self._thread = threading.local()
        gmr.register()
        shadow.check_option()

    def _read(self) -> options.PerAggregates[float]:
        return options.PerAggregates(functools.partial(
            self._of_aggregates, default=CONF[self.group][self.multiplier]))

    def _of_aggregates(self, host_state, default: float) -> float:
        multiplier = scheduler.weight_multiplier(
            host_state, self.multiplier, default)
        # Infinity times a weight of 0 is no number, and neither is "nan": Nova
        # would sort all hosts of the request in no order.
        if not math.isfinite(multiplier):
            options.log_bad_number(
                self.multiplier, str(multiplier), 'finite number')
            return default
        return multiplier

    def read_multipliers(self) -> options.PerAggregates[float]:
        """Return new multipliers for this request, by host."""
        # They are read on demand, once for hosts with the same aggregates.
        multipliers = self._thread.multipliers = self._read()
        return multipliers

    @abc.abstractmethod
    def weigh_hosts(self, weighed_obj_list, weight_properties) -> list[float]:
        """Return the weights of all hosts of a request, before the multiplier.

        It must call :meth:`read_multipliers`; see :meth:`weigh_objects`.
        """

    def weigh_objects(self, weighed_obj_list, weight_properties):
        """Return the weights of all hosts of a request; called by Nova."""
        # What is there is of the request before in this thread.
        self._thread.in_shadow = False
        raw = self.weigh_hosts(weighed_obj_list, weight_properties)
        try:
            self._observe(weighed_obj_list, weight_properties, raw)
        except Exception:
            LOG.exception('What %s in shadow would have changed cannot be '
                          'worked out', type(self).__name__)
        # Weights have no effect where the multiplier is 0, see
        # weight_multiplier().
        return raw

    def _observe(self, weighed: list, request_spec, raw: list[float]) -> None:
        """Have raw weights remembered if this weigher is in shadow."""
        request_note = note_of(request_spec)
        if not (shadowed := request_note.in_shadow()):
            return
        name = type(self).__name__
        self._thread.in_shadow = name in shadowed
        shadow_note = shadow_outcomes.of_request(request_note)
        shadow_outcomes.remain(request_note, [each.obj for each in weighed])
        if name not in shadowed:
            return
        multiplier_of = self._thread.multipliers.for_host
        shadow_note.weighed(name, weighed, [
            weight * multiplier_of(each.obj) for each, weight in zip(
                weighed, scheduler.normalized_weights(
                    raw, self.minval, self.maxval))])

    def _weigh_object(self, host_state, request_spec):
        # Nova demands it, and calls only weigh_objects().
        return self.weigh_objects(
            [weights.WeighedHost(host_state, 0.0)], request_spec)[0]

    def weight_multiplier(self, host_state):
        if getattr(self._thread, 'in_shadow', False):
            return 0.0
        # None if another program than Nova's scheduler asks without
        # weigh_objects().
        multipliers = getattr(self._thread, 'multipliers', None)
        return (multipliers or self._read()).for_host(host_state)
