# SPDX-License-Identifier: Apache-2.0
"""What a flavor is looked at by, and what is found."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched import extra_specs
from nfv_sched.nova import flavors
from nfv_sched.numa import rule
from nfv_sched.numa import topology
from nfv_sched.ops.counting import capacity
from nfv_sched.ops.snapshot import snapshot

#: No server of the flavor can run, or none as it was meant.
ERROR = 'error'
#: It runs, but perhaps not as it was meant.
WARNING = 'warning'
#: It runs as it was meant, and could do better.
NOTE = 'note'
SEVERITIES = (ERROR, WARNING, NOTE)
#: Stands for a key where it is the whole that something is about.
WHOLE = '-'


class LintFinding(ty.NamedTuple):
    """Something about a flavor that somebody should know.

    :ivar severity: one of :data:`SEVERITIES`
    :ivar key: the extra spec or image property; what else it is about where
        there is none, such as ``RAM``
    :ivar text: what is so
    :ivar do: what to do about it
    """

    severity: str
    key: str
    text: str
    do: str


class Needs(ty.NamedTuple):
    """What an image needs of a flavor.

    :ivar memory: MiB
    :ivar disk: GiB of the root disk
    """

    memory: int = 0
    disk: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorHosts:
    """What the hosts of a cloud make of a flavor.

    :ivar cloud: the cloud, with all hosts in service
    :ivar capacity: how many guests the hosts take if they are empty
    :ivar names: names of the labels
    :ivar filters: names of the enabled filters
    :ivar fits_with_networks: whether a host may take a guest with networks
        that it takes with none
    """

    cloud: snapshot.Cloud
    capacity: capacity.FlavorCapacity
    names: rule.Names
    filters: frozenset[str] = frozenset()
    fits_with_networks: bool = False

    @property
    def none_fits(self) -> bool:
        """Whether no host takes a guest, with whatever networks."""
        return not self.capacity.fits and not self.fits_with_networks

    @property
    def that_fit(self) -> list[snapshot.Host]:
        """The hosts that take a guest if they are empty."""
        counted = self.capacity.hosts
        return [host for host in self.cloud.hosts
                if host.name in counted and counted[host.name].fits]

    @property
    def nodes(self) -> list[snapshot.Node]:
        """The NUMA nodes of all hosts."""
        return [node for host in self.cloud.hosts
                for node in host.nodes or ()]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LintSubject:
    """A flavor, and what Nova and nfv-sched make of it.

    :ivar flavor: the flavor
    :ivar image: properties of the image, by name
    :ivar needs: what the image needs
    :ivar specs: extra specs that the API knows
    :ivar refused: key of each extra spec that the API refuses -> its message
    :ivar unread: whether Nova was not asked about the flavor as a whole
    :ivar refusals: why Nova takes no server of the flavor
    :ivar image_refusals: the same, if that is so only with this image
    :ivar image_errors: image property that Nova cannot read -> its message
    :ivar image_needed: properties of an image that Nova takes no server of
        the flavor without; empty if an image was given
    :ivar guest: NUMA nodes of a guest; None if it has none, or Nova refuses
        the flavor
    :ivar policy: its policies by the keys of nfv-sched
    :ivar faults: what is wrong with these keys
    :ivar rules: the rules of a guest that is told nothing of devices and
        networks; none of those whose keys are wrong
    :ivar unplaceable: key, and why no host takes the guest by the rules of
        nfv-sched; None if some may
    :ivar hosts: what hosts make of it; None if they were not asked
    :ivar servers: servers of this flavor; None if they were not asked for
    """

    flavor: snapshot.Flavor
    image: Mapping[str, str] = dataclasses.field(default_factory=dict)
    needs: Needs = Needs()
    specs: tuple[flavors.Spec, ...] = ()
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)
    unread: bool = False
    refusals: tuple[flavors.FlavorRefusal, ...] = ()
    image_refusals: tuple[flavors.FlavorRefusal, ...] = ()
    image_errors: Mapping[str, str] = dataclasses.field(default_factory=dict)
    image_needed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    guest: topology.GuestTopology | None = None
    policy: extra_specs.NFVPolicy = extra_specs.NO_POLICY
    faults: tuple[extra_specs.Fault, ...] = ()
    rules: tuple[rule.Rule, ...] = ()
    unplaceable: tuple[str, str] | None = None
    hosts: FlavorHosts | None = None
    servers: tuple[snapshot.Server, ...] | None = None

    @property
    def readable(self) -> bool:
        """Whether Nova makes a request of it."""
        return not (self.unread or self.refusals or self.image_refusals)

    def value(self, key: str, image_key: str | None = None) -> str | None:
        """The value of an extra spec, or of the image property like it.

        :param key: of the extra spec
        :param image_key: name of the image property
        """
        value = self.flavor.extra_specs.get(key)
        if value is None and image_key is not None:
            value = self.image.get(image_key)
        return value


class LintRule(ty.NamedTuple):
    """One thing that is looked for.

    :ivar name: of the rule
    :ivar find: finds it
    """

    name: str
    find: Callable[[LintSubject], Iterable[LintFinding]]
