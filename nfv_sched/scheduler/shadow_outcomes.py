# SPDX-License-Identifier: Apache-2.0
"""Work out what filters and weighers in shadow would have changed.

A filter in shadow decides about copies of the hosts, with a note of its own on
the request, in which nothing is in shadow.  So nothing that it does reaches
Nova.  The hosts that it refuses are remembered until Nova places the server,
and are compared then with the host that Nova has chosen.
"""

from collections.abc import Iterable, Mapping, Sequence
import math
import typing as ty

from oslo_log import log as logging

from nfv_sched.base import reasons
from nfv_sched.journal import entry
from nfv_sched.journal.entry import ShadowChange
from nfv_sched.nova import scheduler
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import process
from nfv_sched.scheduler import refusals
from nfv_sched.scheduler import visit

LOG = logging.getLogger(__name__)

CONF = scheduler.CONF

_COPY = '_nfv_sched_copy'
_OURS = '_nfv_sched'
_CONSUME = 'consume_from_request'


class Outcome(ty.NamedTuple):
    """The decision of filters and weighers in shadow about a placed server."""

    change: ShadowChange
    host: str
    #: names of the filters and weighers that would have changed it
    by: tuple[str, ...] = ()
    #: name of the host that would have been first; empty if it is not known
    instead: str = ''
    #: (filter, host, reason) of the hosts that had passed all filters that
    #: count, and would have been refused
    rejected: tuple[tuple[str, str, reasons.Lazy], ...] = ()


class _Weights(ty.NamedTuple):
    weigher: str
    #: ``nova.scheduler.weights.WeighedHost`` each; their weights grow until
    #: all weighers have run
    weighed: Sequence
    added: Sequence[float]  #: what the weigher would have added to each


class ShadowNote:
    """The decisions of filters and weighers in shadow about a request.

    :ivar note: the request as it would be if nothing were in shadow
    :ivar examined_by: names of the filters and weighers in shadow that have
        examined hosts for it, in order
    :ivar rejected: host -> (filter, reason); hosts that were refused for an
        earlier server of the request remain, as Nova would drop them
    :ivar remaining: names of the hosts that passed the last filter or weigher
        of nfv-sched
    """

    def __init__(self) -> None:
        self.note = notes.RequestNote()
        self.note.shadowed = frozenset()
        self.instance: str | None = None
        self.examined_by: list[str] = []
        self.rejected: dict[str, tuple[str, reasons.Lazy]] = {}
        self.remaining: tuple[str, ...] = ()
        self._weights: list[_Weights] = []
        self._placed: set[str | None] = set()

    def follow(self, request_note: notes.RequestNote) -> None:
        """Take over the request, and forget what concerned another server."""
        if request_note.instance != self.instance:
            self.instance = request_note.instance
            self.examined_by, self._weights = [], []
        self.note.follow(request_note)

    def copies(self, name: str, host_states: Iterable) -> list:
        """Return copies of hosts to examine, without those refused before."""
        if self.instance in self._placed:
            return []  # Nova looks for alternates
        if name not in self.examined_by:
            self.examined_by.append(name)
        copies = []
        for host_state in host_states:
            scheduler.when_placed(host_state, _RECORDER)
            if host_state.host not in self.rejected:
                copies.append(_copy_of(host_state))
        return copies

    def refuse(self, name: str,
               refused: Iterable[tuple[str, reasons.Lazy]]) -> None:
        for host, reason in refused:
            self.rejected[host] = name, reason

    def weighed(self, name: str, weighed: Sequence,
                added: Sequence[float]) -> None:
        """Remember what a weigher in shadow would have added."""
        if self.instance in self._placed or len(set(added)) < 2:
            return  # Nova looks for alternates, or no host is preferred
        if name not in self.examined_by:
            self.examined_by.append(name)
        self._weights.append(_Weights(name, list(weighed), added))
        for each in weighed:
            scheduler.when_placed(each.obj, _RECORDER)

    def outcome(self, host: str) -> Outcome | None:
        """Return what would have been different; None if known already."""
        if self.instance in self._placed or not self.examined_by:
            return None
        self._placed.add(self.instance)
        if host not in self.remaining:
            self.remaining += (host,)
        remaining = [name for name in self.remaining
                     if name not in self.rejected]
        rejected = tuple([(*self.rejected[name][:1], name,
                           self.rejected[name][1])
                          for name in self.remaining if name in self.rejected])
        weights, self._weights = self._weights, []
        totals = _totals(weights)
        if not remaining:
            names = {each[0] for each in rejected}
            return Outcome(
                ShadowChange.REFUSED, host,
                tuple([name for name in self.examined_by
                       if name in names][-1:]), '', rejected)
        better: list[str] = []
        if host not in self.rejected and host in totals:
            real, total = totals[host]
            # Hosts that weigh more in Nova, too, could not be claimed.
            better = [name for name in remaining if name in totals and
                      totals[name][0] <= real and totals[name][1] > total and
                      not math.isclose(totals[name][1], total)]
        if host in self.rejected:
            by: tuple[str, ...] = (self.rejected[host][0],)
        elif better:
            by = _weighers(weights, host, better)
        else:
            return Outcome(ShadowChange.NOTHING, host)
        instead = max(better or [name for name in remaining
                                 if name in totals] or remaining[:1],
                      key=lambda name: totals.get(name, (0.0, 0.0))[1])
        if len(remaining) > 1 and not totals:
            instead = ''
        return Outcome(ShadowChange.ELSEWHERE, host, by, instead, rejected)


def _totals(weights: Sequence[_Weights]) -> dict[str, tuple[float, float]]:
    """Return host -> its weight in Nova, and with all weighers."""
    totals: dict[str, tuple[float, float]] = {}
    for _name, weighed, added in weights:
        for each, amount in zip(weighed, added):
            real, total = totals.get(each.obj.host, (each.weight, each.weight))
            totals[each.obj.host] = real, total + amount
    return totals


def _weighers(weights: Sequence[_Weights], host: str,
              better: Iterable[str]) -> tuple[str, ...]:
    """Return the weighers that prefer one of some hosts to another one."""
    names = []
    for name, weighed, added in weights:
        amounts = {each.obj.host: amount
                   for each, amount in zip(weighed, added)}
        if any(amounts[other] > amounts[host] for other in better):
            names.append(name)
    return tuple(names)


def _copy_of(host_state):
    """Return a copy of a HostState, for a filter that may change it.

    It is made anew at each call, as the host may have been changed since; what
    nfv-sched keeps on it remains.
    """
    if (copy := host_state.__dict__.get(_COPY)) is None:
        copy = host_state.__dict__[_COPY] = object.__new__(type(host_state))
    own = {name: value for name, value in copy.__dict__.items()
           if name.startswith(_OURS)}
    copy.__dict__.clear()
    copy.__dict__.update([
        (name, value) for name, value in host_state.__dict__.items()
        if not name.startswith(_OURS) and name != _CONSUME])
    copy.__dict__.update(own)
    copy.limits = dict(host_state.limits)
    if (candidates := host_state.allocation_candidates) is not None:
        copy.allocation_candidates = [_candidate(each) for each in candidates]
    return copy


def _candidate(candidate: Mapping) -> dict:
    """Return a copy of an allocation candidate, to which claims are added."""
    return {**candidate, 'allocations': {
        provider: {**allocation, 'resources': dict(allocation['resources'])}
        for provider, allocation in candidate['allocations'].items()}}


def of_request(request_note: notes.RequestNote) -> ShadowNote:
    if (shadow_note := request_note.shadow) is None:
        shadow_note = request_note.shadow = ShadowNote()
    shadow_note.follow(request_note)
    return shadow_note


def remain(request_note: notes.RequestNote, host_states: Iterable) -> None:
    """Remember the hosts that have passed so far, if anything is in shadow."""
    if (shadow_note := request_note.shadow) is not None:
        shadow_note.remaining = tuple([each.host for each in host_states])


def record_placed(host_states: Iterable) -> None:
    """Have the journal record the server that is placed, if it should."""
    if CONF.nfv_sched.decision_journal_placed:
        for host_state in host_states:
            scheduler.when_placed(host_state, _RECORDER)


class _Recorder(scheduler.ConsumeListener):
    def after_placed(self, host_state, spec_obj):
        request_note = notes.note_of(spec_obj)
        shadow_note = request_note.shadow
        outcome = shadow_note and shadow_note.outcome(host_state.host)
        if outcome is None:
            if CONF.nfv_sched.decision_journal_placed and (
                    request_note.lookups is None):
                _write(request_note, (), Outcome(
                    ShadowChange.NOTHING, host_state.host), ())
            return
        copy = host_state.__dict__.get(_COPY)
        if copy is not None and host_state.host not in shadow_note.rejected:
            # The labels of this server hold for the next one of the request.
            visit.placed(copy, shadow_note.note, spec_obj)
        if request_note.lookups is None:  # not in a simulation
            _record(request_note, shadow_note, outcome)


_RECORDER = _Recorder()


def _record(request_note: notes.RequestNote, shadow_note: ShadowNote,
            outcome: Outcome) -> None:
    """Count and log an outcome, and add it to the journal."""
    process.STATE.add_placed(
        shadow_note.examined_by, outcome.change, outcome.by)
    rejected = [(name, host, refusals.resolve(reason))
                for name, host, reason in outcome.rejected]
    _write(request_note, shadow_note.examined_by, outcome, rejected)
    if outcome.change is ShadowChange.NOTHING:
        return
    summary = reasons.summary_text([
        reason for _name, host, reason in rejected
        if outcome.change is ShadowChange.REFUSED or host == outcome.host])
    LOG.info('In shadow: %s would have %s%s', ', '.join(outcome.by),
             f'refused the last host for server {shadow_note.instance}'
             if outcome.change is ShadowChange.REFUSED else
             f'placed server {shadow_note.instance} on '
             f'{outcome.instead or "another host"} instead of {outcome.host}',
             f': {summary}' if summary else '')


def _write(request_note: notes.RequestNote, examined_by: Iterable[str],
           outcome: Outcome, rejected: Iterable) -> None:
    if CONF.nfv_sched.decision_journal:
        refusals.write(
            entry.PlacedServer, request_note, host=outcome.host,
            passes=refusals.entry_passes(request_note.passes),
            shadow=tuple(examined_by), change=outcome.change.value,
            by=outcome.by, instead=outcome.instead,
            reasons=refusals.entry_reasons(rejected))
