# SPDX-License-Identifier: Apache-2.0
"""Keep the state of a simulated cloud between steps."""

import collections
import typing as ty

from nova import exception
from nova import objects

from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import network
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator import restore_hosts
from nfv_sched.ops.simulator import scheduler
from nfv_sched.ops.simulator import servers


class State:
    """The present hosts, servers and services of a cloud, by their names.

    :ivar scenario: the cloud before the first step, and its steps
    :ivar images: properties of images, as Nova stores them
    :ivar servers: including deleted ones
    :ivar groups: name of server group -> names of its members
    :ivar residues: name of host that is down -> resources that evacuated or
        deleted servers still occupy there
    :ivar notes: messages on claims that failed in the present step
    :raises InputError: if a filter does not exist, an image or PCI alias is
        bad, or Nova cannot have such a host or report its PCI devices
    """

    def __init__(self, scenario: scenarios.Scenario):
        self.scenario = scenario
        self.context = nova_internals.admin_context()
        self.placement = placement.Placement()
        if scenario.new_hosts:
            self.placement.set_names(placement.STANDARD_TRAITS,
                                     placement.STANDARD_CLASSES)
        self.hosts: dict[str, compute.ComputeHost] = {}
        self.servers: dict[str, servers.SimulatedServer] = {}
        self.groups: dict[str, list[str]] = {}
        self.residues = collections.defaultdict[
            str, list[tuple[objects.Instance, compute.ServerClaim]]](list)
        self.notes: list[str] = []
        self.flavors = {
            flavor.name: flavor for flavor in scenario.cloud.flavors}
        self.images = {name: self._image(name, properties)
                       for name, properties in scenario.images.items()}
        try:
            nova_scheduler.pci_aliases()
        except exception.NovaException as e:
            raise problems.InputError([f'{scenario.path}: {e}'])
        for host, providers in restore_hosts.hosts(scenario):
            self.hosts[host.name] = host
            for provider in providers:
                self.placement.add(provider, providers[0].uuid)
        try:
            self.manager = scheduler.HostManager(
                self.hosts, scenario.cloud.aggregates)
        except (exception.SchedulerHostFilterNotFound, ImportError,
                AttributeError, ValueError) as e:
            raise problems.InputError([f'{scenario.path}: {e}'])
        self.network = network.SimulatedNetwork(
            scenario, self.hosts, self.servers, self.placement,
            self.manager.aggregates_of)
        self.scheduler = scheduler.Scheduler(
            self.manager, self.placement, self.network)

    def present_members(self, group: str) -> list[servers.SimulatedServer]:
        members = map(self.servers.__getitem__, self.groups.get(group, ()))
        return [each for each in members if each.status != servers.DELETED]

    def _image(self, name: str,
               properties: ty.Mapping[str, ty.Any]) -> dict[str, str]:
        try:
            nova_internals.image_meta(properties)
            for unknown in nova_internals.unknown_image_properties(properties):
                raise ValueError(f'Nova knows no image property {unknown!r}')
        except (ValueError, exception.NovaException) as e:
            raise problems.InputError([
                f'{self.scenario.path}: images.{name}: {e}'])
        return {key: str(value) for key, value in properties.items()}


def nova_flavor(spec: snapshot.Flavor) -> objects.Flavor:
    flavor = objects.Flavor(
        id=1, name=spec.name, flavorid=spec.id or spec.name, vcpus=spec.vcpus,
        memory_mb=spec.memory, root_gb=spec.disk,
        ephemeral_gb=spec.ephemeral, swap=spec.swap, rxtx_factor=1.0,
        vcpu_weight=0, is_public=True, disabled=False, description=None,
        extra_specs=dict(spec.extra_specs))
    flavor.obj_reset_changes()
    return flavor
