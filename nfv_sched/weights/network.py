# SPDX-License-Identifier: Apache-2.0
"""Define the base class of the weighers of network load."""

import abc

from oslo_log import log as logging

from nfv_sched.base import conf
from nfv_sched.limits import decide
from nfv_sched.limits import options as network_limits
from nfv_sched.limits import reservations
from nfv_sched.limits import usage
from nfv_sched.nova import scheduler
from nfv_sched.scheduler import figures
from nfv_sched.scheduler import notes
from nfv_sched.weights import multiplier

LOG = logging.getLogger(__name__)

CONF = scheduler.CONF
conf.register_opts(CONF)


class NetworkLoadWeigher(multiplier.MultipliedWeigher):
    """A weigher by the network load of a host; less load weighs more.

    Nova normalises the weights, as those of its own resource weighers: the
    least loaded host weighs 1 and the most loaded 0, times the multiplier.
    All weigh the same without data from Neutron, or if these are older than
    ``max_snapshot_age``.
    """

    def __init__(self):
        super().__init__()
        figures.process_sources()

    @abc.abstractmethod
    def loads(self, snapshot: usage.Snapshot, placed: reservations.Memory,
              host_states: list) -> list[int] | None:
        """Return the load of each host, in the unit of the weigher.

        :param snapshot: the data from Neutron
        :param placed: the servers that this process has placed since
        :returns: in the order of the hosts; None if the load is not known
        """

    def weigh_hosts(self, weighed_obj_list, weight_properties):
        """Return the negative loads, which Nova normalises."""
        loads = None
        self.read_multipliers()
        try:
            sources = figures.sources_of(notes.note_of(weight_properties))
            snapshot = sources.figures.get()
            if sources.figures.is_fresh(snapshot):
                loads = self.loads(
                    snapshot, sources.recent,
                    [weighed.obj for weighed in weighed_obj_list])
        except Exception:
            LOG.exception('Hosts cannot be weighed by their network load')
        if loads is None:
            # normalize() makes 0 of equal weights: no host is preferred.
            return [0.0] * len(weighed_obj_list)
        return [-amount for amount in loads]


def ports_of(snapshot: usage.Snapshot, placed: reservations.Memory,
             host_states: list) -> list[int]:
    """Count the ports of each host's virtual switch, with physical ones.

    :param placed: the servers that this process has placed since ``snapshot``
    """
    limits = network_limits.by_host(network_limits.defaults(CONF))
    shown, recently = snapshot.hosts, placed.hosts()
    ports = []
    for host_state in host_states:
        name = host_state.host
        # Neutron knows no physical ports, but they differ between aggregates.
        used = decide.PORTS.used(
            limits.for_host(host_state),
            shown.get(name, usage.NO_USAGE).vswitch_ports)
        # Neutron shows a port only once nova-compute has bound it, and the
        # snapshot is older still: a burst of servers would go to the same
        # host.
        if name in recently:
            used += placed.unseen(snapshot, name)[0]
        ports.append(used)
    return ports
