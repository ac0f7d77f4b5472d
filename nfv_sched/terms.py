#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""How the hosts of a request are decided about.

By the options, the filters that are enabled, and the rules of the request that
these keep.  Worked out once for a server and kept with the request.
"""

from collections.abc import Mapping
import functools
import typing as ty

from nfv_sched.nova import scheduler
from nfv_sched.numa import decide
from nfv_sched.request import Request
from nfv_sched.request import RequestNote
from nfv_sched.rules import base

_STOCK = 'NUMATopologyFilter'


class Settings(ty.NamedTuple):
    """Options, read once for a server.

    :ivar names: what the labels are called
    :ivar predicted_is_enough: strict policies may rest on a prediction
    :ivar packing: Nova fills the most used NUMA node first
    :ivar limits_lost: moves must keep strict policies without limits
    :ivar filters: enabled filter -> its place among them, the last if several
    """

    names: base.Names
    predicted_is_enough: bool
    packing: bool
    limits_lost: bool
    filters: Mapping[str, int]


@functools.lru_cache(maxsize=16)
def _places(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: place for place, name in enumerate(names)}


def settings(note: RequestNote) -> Settings:
    """The options that count for a request."""
    known = note.settings
    if known is None:
        options = scheduler.CONF.nfv_sched
        known = note.settings = Settings(
            base.Names(options.vswitch_label, options.node_label_prefix),
            options.strict_enforcement == 'predicted',
            scheduler.packs_numa_cells(),
            options.moves_without_limits == 'refuse' and
            not scheduler.live_migration_carries_limits(),
            _places(tuple(scheduler.enabled_filters())))
    return known


def left_to_others(note: RequestNote, name: str,
                   decision: decide.Decision) -> bool:
    """Whether a filter that comes later refuses the host.

    Each refuses by the rule that it is named after.  Where its own filter is
    not enabled, or has been passed when things were different, the next one
    does it.

    :param note: the note of the request
    :param name: the filter that asks
    :param decision: by which the host is refused
    """
    filters = settings(note).filters
    place = filters.get(name)
    if place is None:
        return False
    for refusing in decision.refused_by:
        after = filters.get(refusing)
        if after is not None:
            # Nova's own filter may search for minutes on such a host.
            return after > place and not (
                decision.refused_by == decide.FIT
                and place < filters.get(_STOCK, -1) < after)
    return False


def of(note: RequestNote, request: Request, name: str | None = None,
       stays: bool = False) -> decide.Terms:
    """How to decide about the hosts of a request.

    A rule counts if its filter is enabled.  All count from the first filter
    on, so that a host is decided about once.

    :param note: the note of the request
    :param request: the request
    :param name: a filter whose rules count, enabled or not
    :param stays: whether they count from now on
    """
    ran = note.ran
    if name is not None and name not in ran and (
            name not in settings(note).filters):
        ran = (*ran, name)
        if stays:
            note.ran = ran
    known = note.terms.get(ran)
    if known is None:
        known = note.terms[ran] = _of(settings(note), request, ran)
    return known


def _of(options: Settings, request: Request,
        ran: tuple[str, ...]) -> decide.Terms:
    order = {name: len(options.filters) + place
             for place, name in enumerate(ran)}
    order.update(options.filters)
    rules = []
    for rule in request.rules:
        place = min([order[name] for name in rule.filters
                     if name in order], default=None)
        if rule.steers and (rule.general or place is not None):
            rules.append((-1 if rule.general else place, rule))
    ordered = tuple([rule for _place, rule in sorted(
        rules, key=lambda item: item[0])])
    return decide.Terms(
        ordered, any(rule.ours for rule in request.rules), options.names,
        options.predicted_is_enough,
        request.is_move and options.limits_lost,
        tuple([rule for rule in ordered if rule.caps]),
        tuple([rule for rule in request.rules
               if type(rule).never is not base.Rule.never]))
