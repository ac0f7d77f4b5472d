# SPDX-License-Identifier: Apache-2.0
"""Define the base classes of the filters.

A filter decides about one host and gives the reason.  The base class does the
rest, and turns exceptions into refusals.
"""

import abc
import threading
import time
import typing as ty

from nova.scheduler import filters
from oslo_log import log as logging

from nfv_sched.base import reasons
from nfv_sched.fit.numa import decide
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.numa import topology
from nfv_sched.fit import request as nfv_request
from nfv_sched.nova import features
from nfv_sched.nova import scheduler
from nfv_sched.scheduler import active_rules
from nfv_sched.scheduler import gmr
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import process
from nfv_sched.scheduler import refusals
from nfv_sched.scheduler import shadow
from nfv_sched.scheduler import shadow_outcomes
from nfv_sched.scheduler import visit

LOG = logging.getLogger(__name__)

CONF = scheduler.CONF


class NFVHostFilter(filters.BaseHostFilter, metaclass=abc.ABCMeta):
    """Base class of the filters of nfv-sched.

    Instances are shared by the threads of a process; what belongs to one
    request is kept on the RequestSpec and the HostStates.
    """

    # A rebuild keeps its host and its NUMA nodes.
    RUN_ON_REBUILD = False

    def __init__(self):
        super().__init__()
        self._thread = threading.local()
        gmr.register()
        if features.release() not in features.RELEASES:
            from nfv_sched.nova import interfaces
            features.note_missing(interfaces.missing())
        shadow.check_option()
        refusals.watch()

    @abc.abstractmethod
    def prepare(self, request: nfv_request.Request,
                request_note: notes.RequestNote) -> ty.Any:
        """Return the values for :meth:`decide` that do not depend on the host.

        :raises Exception: any; all hosts are refused then
        """

    @abc.abstractmethod
    def decide(self, host_state, request: nfv_request.Request,
               request_note: notes.RequestNote,
               prepared: ty.Any) -> decide.Decision:
        """Decide about one host; if it is accepted, prepare it for the claim.

        :raises Exception: any; the host is refused then
        """

    def concerns(self, request: nfv_request.Request) -> bool:
        return True

    def is_broken(self, request: nfv_request.Request) -> bool:
        """Return whether Nova lacks what the filter needs for a request."""
        return False

    def run_filter_for_index(self, index: int) -> bool:
        """Record the number of the server in its request; always true."""
        # Nova calls this in the same thread just before filter_all.
        self._thread.index = index
        return True

    def host_passes(self, host_state, spec_obj) -> bool:
        """Return whether one host passes; not used by :meth:`filter_all`."""
        request_note = notes.note_of(spec_obj)
        if (request := self._read(request_note, spec_obj)) is None:
            return self._is_shadowed(request_note)
        if not self._looks_at(request):
            return True
        passed, _refused = self._filter_hosts(
            [host_state], request, request_note)
        return bool(passed)

    def filter_all(self, filter_obj_list, spec_obj):
        """Return the hosts that pass, a ``HostState`` each.

        :raises nova.exception.NoValidHost: with the reason, if no host is left
            for the first server of a request and ``expose_reasons`` lets users
            see it
        """
        # Gone through several times.
        host_states = list(filter_obj_list)
        # The number is of this call only: callers other than Nova's scheduler
        # do not set it.
        index = getattr(self._thread, 'index', None)
        self._thread.index = None
        # Nova checks RUN_ON_REBUILD in _filter_one, which this replaces.
        if not host_states or scheduler.request_is_rebuild(spec_obj):
            return host_states
        began = time.perf_counter()
        request_note = notes.note_of(spec_obj)
        request_note.begin(index, spec_obj)
        if (request := self._read(request_note, spec_obj)) is None:
            return host_states if self._is_shadowed(request_note) else []
        if not self._looks_at(request):
            shadow_outcomes.remain(request_note, host_states)
            return host_states
        passed, refused = self._filter_hosts(
            host_states, request, request_note)
        request_note.rejected += refused
        request_note.passes.append((
            type(self).__name__, len(host_states), len(passed),
            len(request_note.rejected)))
        process.STATE.add_pass(
            type(self).__name__, len(host_states),
            time.perf_counter() - began)
        if not passed:
            refusals.report(type(self).__name__, request_note, index)
        elif LOG.isEnabledFor(logging.DEBUG):
            for host, reason in request_note.rejected:
                LOG.debug('Host %s refused: %s', host,
                          refusals.resolve(reason))
        shadow_outcomes.remain(request_note, passed)
        shadow_outcomes.record_placed(passed)
        return passed

    def _filter_hosts(
        self, host_states: list, request: nfv_request.Request,
        request_note: notes.RequestNote,
    ) -> tuple[list, list[tuple[str, reasons.Lazy]]]:
        """Return the hosts that pass, and (name, reason) of the others.

        If the filter is in shadow all pass, whatever it decides.
        """
        if self._is_shadowed(request_note):
            self._observe(host_states, request, request_note)
            return host_states, []
        return self._decide_all(host_states, request, request_note)

    def _is_shadowed(self, request_note: notes.RequestNote) -> bool:
        return type(self).__name__ in request_note.in_shadow()

    def _observe(self, host_states: list, request: nfv_request.Request,
                 request_note: notes.RequestNote) -> None:
        """Decide about copies of hosts in shadow; remember what is refused."""
        name = type(self).__name__
        try:
            shadow_note = shadow_outcomes.of_request(request_note)
            if copies := shadow_note.copies(name, host_states):
                shadow_note.note.observed = request_note.in_shadow()
                _passed, refused = self._decide_all(
                    copies, request, shadow_note.note)
                shadow_note.refuse(name, refused)
        except Exception:
            LOG.exception('What %s in shadow would have done with server %s '
                          'cannot be worked out', name, request_note.instance)

    def _decide_all(
        self, host_states: list, request: nfv_request.Request,
        request_note: notes.RequestNote,
    ) -> tuple[list, list[tuple[str, reasons.Lazy]]]:
        reason: reasons.Lazy | None = request.error
        if reason is None and self.is_broken(request):
            reason = reasons.Reason(
                reasons.HOST, type(self).__name__,
                'a release of nfv-sched for the installed Nova needed',
                'see the log', own=True)
        if reason is None:
            try:
                prepared = self.prepare(request, request_note)
            except Exception:
                LOG.exception('The request for server %s cannot be judged; '
                              'no host is accepted for it',
                              request_note.instance)
                reason = self._failure_reason()
        if reason is not None:
            return [], [(host_state.host, reason)
                        for host_state in host_states]
        passed, refused = [], []
        for host_state in host_states:
            try:
                decision = self.decide(
                    host_state, request, request_note, prepared)
                if decision.accepted or active_rules.left_to_others(
                        request_note, type(self).__name__, decision):
                    passed.append(host_state)
                    continue
                reason = decision.reason
            # Nova catches no exception of a filter: one odd host would fail
            # every request that meets it.
            except Exception as exc:
                reason = self._exception_reason(host_state, exc)
            refused.append((host_state.host, reason))
        return passed, refused

    def _read(self, request_note: notes.RequestNote, spec_obj):
        try:
            return request_note.read(spec_obj)
        except Exception:
            LOG.exception('The request for server %s cannot be read; no host '
                          'is accepted for it',
                          getattr(spec_obj, 'instance_uuid', None))
            return None

    def _exception_reason(self, host_state, exc: Exception) -> reasons.Reason:
        for odd, what in ((topology.OddTopologyError, 'NUMA topology'),
                          (pci.OddDevicesError, 'PCI devices')):
            if isinstance(exc, odd):
                return reasons.Reason(
                    reasons.HOST, what,
                    'a readable record of the host needed', str(exc))
        # Everything but odd data is a defect, here or in Nova: with traceback.
        LOG.exception('Host %s cannot be judged and is not used for this '
                      'request', getattr(host_state, 'host', host_state))
        return self._failure_reason()

    def _looks_at(self, request: nfv_request.Request) -> bool:
        # Without extra specs it seems to concern no filter.
        return request.error is not None or self.concerns(request) or (
            features.hides_extra_specs())

    def _failure_reason(self) -> reasons.Reason:
        return reasons.Reason(
            reasons.HOST, type(self).__name__,
            'usable data of the host needed', 'see the log')


def predictions_are_broken(request: nfv_request.Request) -> bool:
    """Return whether a strict rule relies on predictions that are broken."""
    return CONF.nfv_sched.strict_enforcement == 'predicted' and (
        features.is_broken(features.Feature.PREDICTION)) and any(
            rule.ours and rule.strict for rule in request.rules)


class RuleFilter(NFVHostFilter):
    """A filter for the rules of one class.

    It refuses the hosts on which these rules leave no choice.  All rules of
    the request are decided about together, so the filters may run in any
    order; see :mod:`nfv_sched.fit.numa.rule`.
    """

    rule: type[numa_rule.Rule]

    def concerns(self, request):
        return any(isinstance(rule, self.rule) for rule in request.rules)

    def is_broken(self, request):
        return features.is_broken(features.Feature.POLICIES) or (
            predictions_are_broken(request))

    def prepare(self, request, request_note):
        # The rules of this filter count, even if it is not enabled.
        return active_rules.for_request(
            request_note, request, self.rule.filters[0], True)

    def decide(self, host_state, request, request_note, prepared):
        return visit.for_host(host_state, request_note).judge(
            host_state, request, prepared)
