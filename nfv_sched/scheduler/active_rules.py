# SPDX-License-Identifier: Apache-2.0
"""Select the rules that count for a request, and the options to decide by.

A rule of the request counts if a filter that enforces it is enabled, and not
in shadow.  The result is worked out once for each server and kept on the
request note.
"""

from collections.abc import Mapping
import functools

from nfv_sched.fit.numa import decide
from nfv_sched.fit.numa import evaluation
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.request import Request
from nfv_sched.nova import scheduler
from nfv_sched.scheduler import notes
from nfv_sched.scheduler.notes import DecisionOptions
from nfv_sched.scheduler.notes import RequestNote

_TOPOLOGY = 'NFVTopologyFilter'


@functools.lru_cache(maxsize=16)
def _places(names: tuple[str, ...],
            shadowed: frozenset[str]) -> Mapping[str, int]:
    return {name: place for place, name in enumerate(names)
            if name not in shadowed}


def settings(request_note: RequestNote) -> DecisionOptions:
    if (decision_options := request_note.settings) is None:
        options = scheduler.CONF.nfv_sched
        decision_options = request_note.settings = DecisionOptions(
            numa_rule.Names(options.vswitch_label, options.node_label_prefix),
            options.strict_enforcement == 'predicted',
            evaluation.CellSorting(
                scheduler.packs_numa_cells(),
                scheduler.claims_sort_by_devices()),
            options.moves_without_limits == 'refuse',
            _places(tuple(scheduler.enabled_filters()),
                    request_note.in_shadow()))
    return decision_options


def left_to_others(request_note: RequestNote, name: str,
                   decision: decide.Decision) -> bool:
    """Return whether a later filter is to refuse a refused host instead.

    Nova's log then names the filter of the rule that the host failed.  If that
    filter is not enabled, or has run before this one, this one refuses.

    :param name: class name of the calling filter
    """
    filters = settings(request_note).filters
    if (place := filters.get(name)) is None:
        return False
    for refusing in decision.refused_by:
        after = filters.get(refusing)
        if after is not None:
            # In shadow, filters that count do not refuse: they run on other
            # hosts than this copy.
            return after > place and (
                request_note.observed is None or
                refusing in request_note.observed)
    return False


def for_request(request_note: RequestNote, request: Request,
                name: str | None = None, stays: bool = False) -> decide.Terms:
    """Return the terms by which the hosts of a request are decided about.

    A rule counts if its filter is enabled.  All of them count already for the
    first filter, so that a host is decided about only once.

    :param name: class name of a filter whose rules count, enabled or not
    :param stays: whether they count for later calls, too
    """
    ran = request_note.ran
    if name is not None and name not in ran and (
            name not in settings(request_note).filters):
        ran = (*ran, name)
        if stays:
            request_note.ran = ran
    if (terms := request_note.terms.get(ran)) is None:
        terms = request_note.terms[ran] = _select(request_note, request, ran)
    return terms


def deciding(request_note: RequestNote,
             request: Request) -> decide.Terms | None:
    """Return the terms by which the enabled filters decide about hosts.

    :returns: None if no enabled filter of NUMA placement of nfv-sched decides
    """
    filters = settings(request_note).filters
    if _TOPOLOGY in filters and (
            request.guest is not None or request.rules
            or request.may_take_card):
        return for_request(request_note, request)
    # The filter of a rule that excludes no NUMA nodes does not decide by them.
    if any(name in filters for rule in request.rules if rule.excludes_cells
           for name in rule.filters):
        return for_request(request_note, request)
    return None


def limits_claim(request_note: RequestNote, request: Request) -> bool:
    """Return whether an enabled filter hands NUMA limits to the claim."""
    return notes.STOCK in settings(request_note).filters or (
        deciding(request_note, request) is not None)


def loses_labels(request_note: RequestNote, request: Request) -> bool:
    """Return whether Nova makes the claim without the labels.

    So if the request is, or may be, for a live migration.
    """
    if scheduler.live_migration_carries_limits():
        return False
    if request_note.live_migration is None:
        request_note.live_migration = (
            request.is_move and request_note.instance is not None and
            scheduler.may_be_live_migration(request_note.instance))
    return request_note.live_migration


def _select(request_note: RequestNote, request: Request,
            ran: tuple[str, ...]) -> decide.Terms:
    options = settings(request_note)
    order = {name: len(options.filters) + place
             for place, name in enumerate(ran)}
    order.update(options.filters)
    rules = []
    for rule in request.rules:
        place = min([order[name] for name in rule.filters
                     if name in order], default=None)
        if rule.excludes_cells and (rule.always_active or place is not None):
            rules.append((-1 if rule.always_active else place, rule))
    ordered = tuple([rule for _place, rule in sorted(
        rules, key=lambda item: item[0])])
    return decide.Terms(
        ordered, any(rule.ours for rule in request.rules), options.names,
        options.predicted_is_enough,
        options.limits_lost and any(rule.strict for rule in ordered) and
        loses_labels(request_note, request),
        tuple([rule for rule in ordered if rule.lowers_cpu_ratio]),
        tuple([rule for rule in request.rules
               if type(rule).unsuitable_reason is not
               numa_rule.Rule.unsuitable_reason]),
        options.sorting)
