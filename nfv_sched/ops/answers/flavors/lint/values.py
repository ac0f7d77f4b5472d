# SPDX-License-Identifier: Apache-2.0
"""Define the input and the output of lint rules."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched.base import extra_specs
from nfv_sched.fit.numa import rule
from nfv_sched.fit.numa import topology
from nfv_sched.nova import flavors
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.simulator.placement import malformed

#: No server of the flavor can run, or none as intended.
ERROR = 'error'
#: Servers run, but perhaps not as intended.
WARNING = 'warning'
#: Servers run as intended, and the flavor could be improved.
NOTE = 'note'
SEVERITIES = (ERROR, WARNING, NOTE)
#: In place of a key: the finding is about the flavor or image as a whole.
WHOLE = '-'


class LintFinding(ty.NamedTuple):
    """A problem of a flavor."""

    severity: str  #: one of :data:`SEVERITIES`
    #: the extra spec or image property; another subject such as ``RAM`` if it
    #: is about neither
    key: str
    text: str  #: description of the problem
    do: str  #: instructions for the operator


class Needs(ty.NamedTuple):
    """The minimum sizes of a flavor that an image requires."""

    memory: int = 0  #: MiB
    disk: int = 0  #: GiB of the root disk


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorHosts:
    """The hosts of a cloud with regard to a flavor."""

    cloud: snapshot.Cloud  #: the cloud, with all hosts in service
    #: how many servers fit if the hosts are empty
    capacity: capacity.FlavorCapacity
    names: rule.Names  #: names of the labels
    filters: frozenset[str] = frozenset()  #: names of the enabled filters
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
        return [node for host in self.cloud.hosts
                for node in host.nodes or ()]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LintSubject:
    """A flavor as Nova and nfv-sched read it."""

    flavor: snapshot.Flavor
    #: properties of the image, by name
    image: Mapping[str, str] = dataclasses.field(default_factory=dict)
    needs: Needs = Needs()  #: minimum sizes that the image requires
    specs: tuple[flavors.Spec, ...] = ()  #: extra specs that the API knows
    #: key of each extra spec that the API refuses -> its message
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: True if Nova did not read the flavor as a whole, because that would take
    #: too long
    unread: bool = False
    #: why Nova refuses all servers of the flavor
    refusals: tuple[flavors.FlavorRefusal, ...] = ()
    #: why Nova refuses them with this image only
    image_refusals: tuple[flavors.FlavorRefusal, ...] = ()
    #: image property that Nova cannot read -> its message
    image_errors: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: image properties without which Nova refuses all servers; empty if an
    #: image was given
    image_needed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: guest NUMA nodes; None if there are none, or Nova refuses the flavor
    guest: topology.GuestTopology | None = None
    #: its policies by the keys of nfv-sched
    policy: extra_specs.NFVPolicy = extra_specs.NO_POLICY
    faults: tuple[extra_specs.Fault, ...] = ()  #: mistakes in these keys
    #: placement rules of a server without devices and networks, except those
    #: whose keys have mistakes
    rules: tuple[rule.Rule, ...] = ()
    #: key, and why it makes nfv-sched refuse all hosts; None if it may accept
    #: some
    unplaceable: tuple[str, str] | None = None
    #: why Placement cannot read Nova's query for a server; None if it can
    query_fault: malformed.Malformed | None = None
    #: which hosts accept it; None if not requested
    hosts: FlavorHosts | None = None
    #: servers of this flavor; None if not requested
    servers: tuple[snapshot.Server, ...] | None = None

    @property
    def readable(self) -> bool:
        return not (self.unread or self.refusals or self.image_refusals)

    def value(self, key: str, image_key: str | None = None) -> str | None:
        value = self.flavor.extra_specs.get(key)
        if value is None and image_key is not None:
            value = self.image.get(image_key)
        return value


class LintRule(ty.NamedTuple):
    """A lint rule."""

    name: str  #: identifier of the rule, of lower-case words with hyphens
    #: function that yields its findings
    find: Callable[[LintSubject], Iterable[LintFinding]]
