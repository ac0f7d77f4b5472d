# SPDX-License-Identifier: Apache-2.0
"""Notes on a request, kept while it is scheduled.

The filters and weighers of one request share what was read of it and other
data, as a note in an attribute of the RequestSpec.  A RequestSpec is used by
one thread of one process for one request, so nothing is locked.
"""

from collections.abc import Hashable, Mapping
import dataclasses
import functools
import typing as ty

from oslo_log import log as logging

from nfv_sched.base import reasons
from nfv_sched.fit.numa import decide
from nfv_sched.fit.numa import evaluation
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import rule
from nfv_sched.fit.numa import topology
from nfv_sched.fit.request import parse
from nfv_sched.fit.request import Request
from nfv_sched.ledger import reader
from nfv_sched.limits import demand
from nfv_sched.nova import fields
from nfv_sched.nova import scheduler
from nfv_sched.scheduler import shadow

if ty.TYPE_CHECKING:
    from nfv_sched.scheduler import limits_note
    from nfv_sched.scheduler import shadow_outcomes

LOG = logging.getLogger(__name__)

_NOTE = '_nfv_sched_note'
#: Fields of a RequestSpec, as ``fit.request.parse`` takes them.
_PARTS = ('image', 'numa_topology', 'pci_requests', 'network_metadata',
          'requested_networks', 'requested_destination', 'security_groups',
          'project_id')

#: Nova's own filter, which writes limits without labels each time it runs.
STOCK = 'NUMATopologyFilter'


class DecisionOptions(ty.NamedTuple):
    """Options of nova.conf to decide by, read once for each server."""

    names: rule.Names
    predicted_is_enough: bool  #: ``strict_enforcement = predicted``
    sorting: evaluation.CellSorting
    #: live migrations must satisfy strict policies without the limits, on a
    #: Nova that loses them: ``moves_without_limits = refuse``
    limits_lost: bool
    #: name of each enabled filter that is not in shadow -> its position among
    #: them; the last one if it is enabled several times
    filters: Mapping[str, int]


@dataclasses.dataclass(slots=True, eq=False)
class RequestNote:
    """The data of one request that is kept while it is scheduled."""

    request: Request | None = None  #: as last read
    #: number of the server that is being placed, from 0; None if not known
    index: int | None = None
    flavor: ty.Any = None  #: ``nova.objects.Flavor``, as last read
    #: (host, reason) of the refusals for this server
    rejected: list[tuple[str, reasons.Lazy]] = dataclasses.field(
        default_factory=list)
    #: for each filter that looked at hosts for this server: its name, the
    #: number of hosts that it was given and that it accepted, and the number
    #: of refusals after it
    passes: list[tuple[str, int, int, int]] = dataclasses.field(
        default_factory=list)
    #: NUMA limits objects by content, shared by like hosts
    limits: dict = dataclasses.field(default_factory=dict)
    #: the options for this server; None until first read
    settings: DecisionOptions | None = None
    #: filters that have run though they are not enabled; their rules count
    ran: tuple[str, ...] = ()
    #: by values of ``ran``
    terms: dict[tuple[str, ...], decide.Terms] = dataclasses.field(
        default_factory=dict)
    #: (``id`` of the terms, whether rules lower the CPU ratio of the host, its
    #: shape) -> decision; and shape of the PCI devices of a host -> devices
    decisions: dict[Hashable, decide.Decision | pci.CandidateDevices] = (
        dataclasses.field(default_factory=dict))
    instance: str | None = None  #: UUID of the server that is being placed
    #: UUIDs of the servers of the request that filters have looked at before
    before: tuple[str, ...] = ()
    #: the ledgers in Placement's answer; None if not known
    ledgers: reader.Reading | None = None
    #: whether the journal has the refusal of the request
    recorded: bool = False
    #: reason for the tenant that a filter could not raise
    tenant_reason: str = ''
    #: looks up items in Neutron; None for that of the process
    lookups: demand.LookupSource | None = None
    #: whether the request is for a live migration; None until Nova's database
    #: is read
    live_migration: bool | None = None
    #: names of the filters and weighers in shadow; None until first read
    shadowed: frozenset[str] | None = None
    #: on a note on which filters in shadow decide, names of those; else None
    observed: frozenset[str] | None = None
    #: what the filters of limits keep; None until needed
    network: 'limits_note.NetworkNote | None' = None
    #: what filters and weighers in shadow have decided; None if none has
    #: examined hosts
    shadow: 'shadow_outcomes.ShadowNote | None' = None
    _key: tuple = ()
    _extra_specs: dict = dataclasses.field(default_factory=dict)
    _pristine: topology.GuestTopology | None = None

    def use(self, lookups: demand.LookupSource | None,
            live_migration: bool | None = None) -> None:
        """Set what the scheduler would read; None stands for no move."""
        self.lookups = lookups
        self.live_migration = bool(live_migration)

    def begin(self, index: int | None, spec_obj=None) -> None:
        """Start a filter; forget what concerned another server.

        :param index: number of the server, from 0; None if not known
        """
        # Nova schedules the servers of a multi-create request one after the
        # other with the same RequestSpec: _schedule() only sets another
        # instance_uuid.
        instance = fields.get(spec_obj, 'instance_uuid')
        if self.instance not in (None, instance):
            self.before += (self.instance,)
        self.instance = instance
        if index != self.index or index is None:
            self.index = index
            self.rejected = []
            self.passes = []
            self.settings = self.shadowed = None
            self.terms, self.decisions = {}, {}

    def in_shadow(self) -> frozenset[str]:
        if self.shadowed is None:
            self.shadowed = shadow.by_option()
        return self.shadowed

    def follow(self, other: 'RequestNote') -> None:
        """Take over the request of another note, to decide about it anew."""
        if other.index is None or (other.index, other.request) != (
                self.index, self.request):
            self.settings = None
            self.limits, self.terms, self.decisions = {}, {}, {}
            self.ran = ()
        self.request, self.index = other.request, other.index
        self.flavor = other.flavor
        self.instance, self.before = other.instance, other.before
        self.ledgers, self.lookups = other.ledgers, other.lookups
        if self.live_migration is None:
            self.live_migration = other.live_migration

    def read(self, spec_obj) -> Request:
        """Return the request, parsed again if the RequestSpec has changed."""
        flavor = fields.get(spec_obj, 'flavor')
        extra_specs = fields.get(flavor, 'extra_specs') or {}
        if not isinstance(extra_specs, Mapping):
            extra_specs = {}
        key = (flavor, *[fields.get(spec_obj, name) for name in _PARTS])
        # By identity: Nova replaces these objects, as consume_from_request()
        # does with numa_topology, and comparing their content at each filter
        # would cost time. Extra specs are a plain dict, which may change in
        # place.
        if (self.request is not None and
                all(a is b for a, b in zip(key, self._key)) and
                extra_specs == self._extra_specs):
            return self.request
        # Guest cells that change with the flavor are those of another guest.
        # Otherwise Nova has narrowed them for the server before.
        if self.request is None or extra_specs != self._extra_specs:
            self._pristine = None
        self._key, self._extra_specs = key, dict(extra_specs)
        self.flavor = flavor
        self.limits = {}
        self.terms, self.decisions = {}, {}
        self.request = parse(extra_specs, *key[1:], self._pristine)
        self._pristine = self.request.pristine
        if self.request.error is None and _loses_labels(self.request.rules):
            self.request = dataclasses.replace(self.request, error=_excluded())
        return self.request


def _loses_labels(rules: tuple[rule.Rule, ...]) -> bool:
    """Return whether ``STOCK`` would write over labels for some rules."""
    enabled = scheduler.enabled_filters()
    if STOCK not in enabled:
        return False
    counting = set(enabled) - shadow.by_option()
    counted = [each for each in rules if not counting.isdisjoint(each.filters)]
    return any(each.ours and (
        each in counted or each.always_active and counted) for each in rules)


@functools.cache
def _excluded() -> reasons.Reason:
    LOG.error('[filter_scheduler] enabled_filters: %s would write over labels '
              'of policies. Servers with these find no host: remove it', STOCK)
    return reasons.Reason(reasons.REQUEST, STOCK,
                          'must not be enabled beside filters of policies')


def note_of(spec_obj) -> RequestNote:
    if (note := spec_obj.__dict__.get(_NOTE)) is None:
        note = spec_obj.__dict__[_NOTE] = RequestNote()
    return note


def placement_answered(spec_obj, summaries: Mapping | None) -> None:
    """Record Placement's answer; None if it was not queried."""
    note_of(spec_obj).ledgers = (
        None if summaries is None else reader.Reading(summaries))
