# SPDX-License-Identifier: Apache-2.0
"""Define the input and the output of lint rules."""

from collections.abc import Callable, Container, Iterator, Mapping
import contextlib
import dataclasses
import functools
import types
import typing as ty

from nova import exception
from nova import objects

from nfv_sched.base import extra_specs
from nfv_sched.fit.numa import rule
from nfv_sched.fit.numa import topology
from nfv_sched.fit import rules as nfv_rules
from nfv_sched.nova import flavors
from nfv_sched.ops.answers.flavors import document
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.simulator.placement import malformed
from nfv_sched.ops.simulator import state
from nfv_sched.scheduler import notes

#: No server of the flavor can run, or none as intended.
ERROR = 'error'
#: Servers run, but perhaps not as intended.
WARNING = 'warning'
#: Servers run as intended, and the flavor could be improved.
NOTE = 'note'
SEVERITIES = (ERROR, WARNING, NOTE)
#: In place of a key: the finding is about the flavor or image as a whole.
WHOLE = '-'

_NOTHING: Mapping[str, ty.Any] = types.MappingProxyType({})
# Images that a flavor may require: memory encryption needs UEFI, and some
# models need stateless firmware.
_IMAGES = ({'hw_firmware_type': 'uefi'},
           {'hw_firmware_type': 'uefi', 'hw_firmware_stateless': 'true'})


class LintFinding(ty.NamedTuple):
    severity: str  #: one of :data:`SEVERITIES`
    #: the extra spec or image property; another subject such as ``RAM`` if it
    #: is about neither
    key: str
    text: str  #: description of the problem
    do: str  #: instructions for the operator


error = functools.partial(LintFinding, ERROR)
warning = functools.partial(LintFinding, WARNING)
note = functools.partial(LintFinding, NOTE)

#: What a rule yields.
Findings = Iterator[LintFinding]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorHosts:
    cloud: snapshot.Cloud  #: the cloud, with all hosts in service
    #: how many servers fit if the hosts are empty
    capacity: capacity.FlavorCapacity
    #: True if a host that accepts no server without networks may accept one
    #: with networks
    fits_with_networks: bool = False
    #: extra specs with which a host accepts it, if none does otherwise
    fits_with: tuple[Mapping[str, str], ...] = ()

    @property
    def none_fits(self) -> bool:
        """True if no host accepts a server, with whatever networks."""
        return not self.capacity.fits and not self.fits_with_networks

    @property
    def that_fit(self) -> list[snapshot.Host]:
        """The hosts that accept a server if they are empty."""
        counted = self.capacity.hosts
        return [host for host in self.cloud.hosts
                if host.name in counted and counted[host.name].fits]

    @property
    def nodes(self) -> list[snapshot.Node]:
        return [node for host in self.cloud.hosts for node in host.nodes or ()]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LintSubject:
    """A flavor as Nova and nfv-sched read it."""

    flavor: snapshot.Flavor
    image: document.Image = document.Image()
    #: servers of this flavor; None if not requested
    servers: tuple[snapshot.Server, ...] | None = None
    #: looks which hosts accept the flavor; None if not requested
    look: 'Callable[[LintSubject], FlavorHosts | None] | None' = None

    @functools.cached_property
    def hosts(self) -> FlavorHosts | None:
        return None if self.look is None or self.unread else self.look(self)

    @functools.cached_property
    def oversized(self) -> tuple[str, ...]:
        """Keys with more vCPUs or NUMA nodes than Nova had better parse."""
        # Nova would take minutes to parse and to place such a server; page
        # sizes it refuses.
        return tuple([
            key for source in (self.flavor.extra_specs, self.image.properties)
            for key, value in source.items()
            if flavors.oversized(key, value) is not None
            and not key.endswith('mem_page_size')])

    @functools.cached_property
    def unread(self) -> bool:
        """Whether Nova did not read the flavor as a whole: too long."""
        return bool(self.oversized) or (
            self.flavor.vcpus >= flavors.MOST_VCPUS or
            len(self.flavor.extra_specs) > extra_specs.MOST_SPECS)

    @property
    def readable(self) -> bool:
        return not (self.unread or self._refusals_with_image)

    @functools.cached_property
    def refused(self) -> Mapping[str, str]:
        """Key of each extra spec that the API refuses -> its message."""
        return {key: message for key, value in self.flavor.extra_specs.items()
                if (message := flavors.refusal(key, value)) is not None}

    @functools.cached_property
    def refusals(self) -> tuple[flavors.FlavorRefusal, ...]:
        """Reasons for which Nova refuses all servers of the flavor."""
        # An image can also make a refused flavor acceptable.
        return tuple([_with_keys(each, self.flavor, _NOTHING)
                      for each in self._refusals_without_image
                      if each in self._refusals_with_image])

    @functools.cached_property
    def image_refusals(self) -> tuple[flavors.FlavorRefusal, ...]:
        """Reasons for which it refuses them with this image only."""
        return tuple([_with_keys(each, self.flavor, self.properties)
                      for each in self._refusals_with_image
                      if each not in self._refusals_without_image])

    @functools.cached_property
    def image_errors(self) -> Mapping[str, str]:
        """Image property that Nova cannot read -> its message."""
        errors: dict[str, str] = {}
        if self.unread:
            return errors
        for key, value in self.image.properties.items():
            try:
                flavors.image({key: value})
            except flavors.ImageError as exc:
                errors[key] = str(exc)
        try:
            flavors.image(_without(self.image.properties, errors))
        except flavors.ImageError as exc:
            errors[WHOLE] = str(exc)
        return errors

    @functools.cached_property
    def image_needed(self) -> Mapping[str, str]:
        """Properties without which Nova refuses; empty if given an image."""
        if self.image.properties or not self._refusals_without_image:
            return _NOTHING
        return next((each for each in _IMAGES if not flavors.refusals(
            self._nova_flavor, flavors.image(each))), _NOTHING)

    @functools.cached_property
    def properties(self) -> Mapping[str, str]:
        """Image properties that Nova can read, or that the flavor needs."""
        if self.unread or WHOLE in self.image_errors:
            return _NOTHING
        return _without(self.image.properties,
                        self.image_errors) or self.image_needed

    @functools.cached_property
    def guest(self) -> topology.GuestTopology | None:
        """Guest NUMA nodes; None if there are none, or Nova refuses it."""
        return topology.guest(self._topology)

    @functools.cached_property
    def policy(self) -> extra_specs.NFVPolicy:
        return extra_specs.parse(
            self.flavor.extra_specs, self._meta.properties)

    @functools.cached_property
    def rules(self) -> tuple[rule.Rule, ...]:
        """Placement rules of a server without devices and networks.

        All but those whose keys have mistakes.
        """
        if self.unread:
            return ()
        rules: list[rule.Rule] = []
        for cls in nfv_rules.classes():
            with contextlib.suppress(rule.RequestError):
                rules += cls.from_request(rule.RequestParts(
                    self.policy,
                    _without(self.flavor.extra_specs, self.refused),
                    self._meta.properties, self.guest, self._topology, (),
                    frozenset(), False, False))
        return tuple(rules)

    @property
    def unplaceable(self) -> ty.Any:
        """The error that refuses all hosts; None if some may do."""
        return notes.note_of(self._request).read(
            self._request).error if self.readable else None

    @property
    def query_fault(self) -> malformed.Malformed | None:
        """The fault of Nova's query in Placement; None if it has none."""
        if not self.readable:
            return None
        with contextlib.suppress(exception.NovaException, ValueError):
            faults = [malformed.find(query.to_querystring()) for query
                      in flavors.placement_requests(None, self._request, None)]
            # Nova goes on with the fallback query.
            if all(faults):
                return faults[0]
        return None

    @functools.cached_property
    def _nova_flavor(self) -> objects.Flavor:
        return state.nova_flavor(self.flavor)

    @functools.cached_property
    def _meta(self) -> objects.ImageMeta:
        return flavors.image(self.properties)

    @functools.cached_property
    def _refusals_without_image(self) -> list[flavors.FlavorRefusal]:
        return [] if self.unread else flavors.refusals(
            self._nova_flavor, flavors.image(_NOTHING))

    @functools.cached_property
    def _refusals_with_image(self) -> list[flavors.FlavorRefusal]:
        return flavors.refusals(
            self._nova_flavor, self._meta
        ) if self.properties else self._refusals_without_image

    @functools.cached_property
    def _topology(self) -> objects.InstanceNUMATopology | None:
        return flavors.numa_topology(
            self._nova_flavor, self._meta) if self.readable else None

    @functools.cached_property
    def _request(self) -> objects.RequestSpec:
        return flavors.request(self._nova_flavor, self._meta, self._topology)


def _with_keys(refusal: flavors.FlavorRefusal, flavor: snapshot.Flavor,
               image: Mapping[str, str]) -> flavors.FlavorRefusal:
    """Return a refusal with the keys without which Nova would not refuse.

    Its text becomes one line, without a full stop.
    """
    def is_needed(specs: Mapping[str, str], image: Mapping[str, str]) -> bool:
        # True if Nova accepts this, or refuses it for another reason.
        try:
            return all(each.kind != refusal.kind for each in flavors.refusals(
                state.nova_flavor(dataclasses.replace(
                    flavor, extra_specs=specs)), flavors.image(image)))
        except flavors.ImageError:
            return False

    specs = flavor.extra_specs
    text = ' '.join(refusal.text.split()).rstrip('.')
    return refusal._replace(text=text, keys=(
        *(key for key in specs if is_needed(_without(specs, {key}), image)),
        *(key for key in image if is_needed(specs, _without(image, {key})))))


def _without(pairs: Mapping[str, str], keys: Container[str]) -> dict[str, str]:
    return {key: value for key, value in pairs.items() if key not in keys}
