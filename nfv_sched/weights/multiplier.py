# SPDX-License-Identifier: Apache-2.0
"""Read the multiplier of a weigher, which aggregates can override."""

import abc
import functools
import threading

from nova.scheduler import weights

from nfv_sched import conf
from nfv_sched import gmr
from nfv_sched.nova import scheduler

CONF = scheduler.CONF
conf.register_opts(CONF)


class MultipliedWeigher(weights.BaseHostWeigher, metaclass=abc.ABCMeta):
    """A weigher with a multiplier that aggregates can override.

    Nova calls :meth:`weigh_objects` with all hosts and then
    :meth:`weight_multiplier` with each.  The first must call
    :meth:`read_multipliers`.

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

    def _read(self) -> scheduler.PerAggregates[float]:
        return scheduler.PerAggregates(functools.partial(
            scheduler.weight_multiplier, name=self.multiplier,
            default=CONF[self.group][self.multiplier]))

    def read_multipliers(self) -> scheduler.PerAggregates[float]:
        """Return new multipliers for this request, by host."""
        # They are read on demand, once for hosts with the same aggregates.
        multipliers = self._thread.multipliers = self._read()
        return multipliers

    @abc.abstractmethod
    def weigh_objects(self, weighed_obj_list, weight_properties):
        """Return the weights of all hosts of a request; called by Nova.

        :param weighed_obj_list: ``nova.scheduler.weights.WeighedHost`` each
        :param weight_properties: ``nova.objects.RequestSpec``
        """

    def _weigh_object(self, host_state, request_spec):
        # Nova demands it, and calls only weigh_objects().
        return self.weigh_objects(
            [weights.WeighedHost(host_state, 0.0)], request_spec)[0]

    def weight_multiplier(self, host_state):
        """Return the multiplier by aggregate metadata, or the option."""
        multipliers = getattr(self._thread, 'multipliers', None)
        return (multipliers or self._read()).for_host(host_state)
