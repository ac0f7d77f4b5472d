# SPDX-License-Identifier: Apache-2.0
"""Define the base classes of the weighers of NUMA placement."""

import abc
from collections.abc import Sequence

from oslo_log import log as logging

from nfv_sched.fit.numa import decide
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit import request as nfv_request
from nfv_sched.scheduler import active_rules
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import visit
from nfv_sched.weights import multiplier

LOG = logging.getLogger(__name__)


class NFVHostWeigher(multiplier.MultipliedWeigher):
    """A weigher by the decision about a host, from 0 to 1.

    Hosts are not normalised against each other: a host that satisfies the
    preferred rules weighs 1 even if all others do, too.  Every host weighs 0
    for requests without such rules, and so does one that cannot be read.
    """

    minval = 0.0
    maxval = 1.0

    #: The class of the rules that are weighed.  They count here even if their
    #: filter is not enabled.
    rule: type[numa_rule.Rule]

    def weighed(self, request: nfv_request.Request) -> list[numa_rule.Rule]:
        return [rule for rule in request.rules if isinstance(rule, self.rule)]

    @abc.abstractmethod
    def weigh(self, host_state, host_visit: visit.Visit,
              request: nfv_request.Request, rules: Sequence[numa_rule.Rule],
              decision: decide.Decision) -> float:
        """Return the weight of a host that can take the guest.

        :raises Exception: any; the host weighs 0 then
        """

    def weigh_hosts(self, weighed_obj_list, weight_properties):
        """Return the weights, cut to ``minval`` and ``maxval``."""
        # Nova's normalize() goes by minval and maxval, but does not cut.
        return [min(max(weight, self.minval), self.maxval) for weight in
                self._weights(weighed_obj_list, weight_properties)]

    def _weights(self, weighed_obj_list, request_spec) -> list[float]:
        self.read_multipliers()
        try:
            request_note = notes.note_of(request_spec)
            request = request_note.read(request_spec)
            rules = self.weighed(request)
            if request.error is not None or not rules:
                return [0.0] * len(weighed_obj_list)
            terms = active_rules.for_request(
                request_note, request, self.rule.filters[0])
        # Nova catches no exception of a weigher: the request would fail
        # although hosts have passed.
        except Exception:
            LOG.exception('The request for server %s cannot be read',
                          getattr(request_spec, 'instance_uuid', None))
            return [0.0] * len(weighed_obj_list)
        return [
            self._weight(weighed.obj, request_note, request, rules, terms)
            for weighed in weighed_obj_list]

    def _weight(self, host_state, request_note: notes.RequestNote,
                request: nfv_request.Request, rules: Sequence[numa_rule.Rule],
                terms: decide.Terms) -> float:
        try:
            host_visit = visit.for_host(host_state, request_note)
            decision = host_visit.decision(host_state, request, terms)
            if not decision.accepted:
                return 0.0
            return self.weigh(host_state, host_visit, request, rules, decision)
        except Exception:
            LOG.exception('Host %s cannot be weighed',
                          getattr(host_state, 'host', host_state))
            return 0.0


class PreferenceWeigher(NFVHostWeigher):
    """A weigher for a policy *prefer*: by the degrees of its rules.

    The servers of one request share the limits of a host.  If placing this
    server there would drop labels that hold an earlier server of the request,
    the degrees of that server are subtracted: such a host weighs down to -1,
    so that the servers that do not get their preference gather on few hosts.
    """

    def weighed(self, request):
        return [rule for rule in super().weighed(request) if not rule.strict]

    def weigh(self, host_state, host_visit, request, rules, decision):
        weight = _value(rules, decision)
        # The other server loses its preference, so that at least the sum over
        # the servers of the request decides.
        if decision.displaces is not None:
            weight -= _value(rules, decision.displaces)
        return weight

    def weigh_hosts(self, weighed_obj_list, weight_properties):
        """Return the weights, from -1 to 1."""
        # Not cut at 0: normalize() hands on what is below minval.
        return self._weights(weighed_obj_list, weight_properties)


def _value(rules: Sequence[numa_rule.Rule],
           decision: decide.Decision) -> float:
    """Return the mean of the degrees of some rules, 0 to 1."""
    degrees = decision.degrees
    return sum([degrees.get(rule.text, 0.0) for rule in rules]) / len(rules)
