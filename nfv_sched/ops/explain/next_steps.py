# SPDX-License-Identifier: Apache-2.0
"""Find the commands that help after a refusal, where one is known to apply."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import functools

import os_resource_classes as orc

from nfv_sched.numa import pci
from nfv_sched.ops.explain import nova_filters
from nfv_sched.ops.explain import relaxation
from nfv_sched.ops.explain import values
from nfv_sched.ops.requests import request
from nfv_sched.ops.requests import subject as subjects
from nfv_sched.ops.snapshot import occupied
from nfv_sched.ops.snapshot import snapshot
from nfv_sched import reasons

_Kind = values.StepKind
_Resource = reasons.Resource
_PCPU = orc.PCPU
#: Name of PCI devices in reasons -> Nova's type of such devices.
_DEVICES = {pci.VF_NOUN: pci.VF, pci.PF_NOUN: pci.PF}


def find(
    cloud: snapshot.Cloud, subject: subjects.ExplainSubject,
    explanation: values.Explanation, options: Sequence[str] = (),
) -> Iterator[values.NextStep]:
    """Yield the steps that help if the request does not fit.

    :param options: words of the command line that choose the cloud and the
        ports, for commands of nfv-sched
    """
    yield from _hosts(cloud, subject, explanation)
    # A server that runs was given back in a copy: its host is not so free.
    # Plans are made for the flavor as the cloud has it.
    if subject.present is not None or (
            explanation.filters is None
            or not _has_flavor(cloud, subject.requested.flavor)):
        return
    cause = next(filter(_is_of_amount, explanation.causes), None)
    if cause is None:
        return
    usable = [host for host in cloud.hosts
              if host.enabled and host.up and host.mapped]
    amounts = _Amounts(explanation, cause, subject.requested, usable)
    largest = amounts.largest()
    step = functools.partial(values.NextStep, cause=cause,
                             needed=amounts.needed)
    if largest is not None and largest < amounts.needed:
        # No host may carry more than the limit.
        if not amounts.of_limit:
            yield step(kind=_Kind.LARGER_HOST, free=largest)
        return
    flavor = subject.requested.flavor.name
    free = amounts.free()
    # Servers can only move to another host.
    if len(usable) > 1 and amounts.may_be_joined(free):
        yield step(kind=_Kind.DEFRAG, free=free, command=(
            'nfv-sched', 'cloud', 'defrag', f'--flavor={flavor}', *options))
    else:
        yield step(kind=_Kind.ADD_HOST, free=free)
    if any(server.host for server in cloud.servers):
        yield step(kind=_Kind.SERVERS, free=free, command=(
            'nfv-sched', 'capacity', 'show', '--next', *options, '--', flavor))


def own_ports(subject: subjects.ExplainSubject) -> list[str]:
    """Return the options with which commands assume a server's own ports."""
    if subject.server is None or not subject.requested.ports:
        return []
    return ['--like', subject.server.uuid]


def _hosts(
    cloud: snapshot.Cloud, subject: subjects.ExplainSubject,
    explanation: values.Explanation,
) -> Iterator[values.NextStep]:
    """Yield commands for hosts that would take it, as was tried."""
    hosts = {host.name: host for host in cloud.hosts}
    for change in explanation.relaxations:
        # Not all hosts at once, nor together with another change.
        if len(change.enabled) != 1 or change.requested != subject.requested:
            continue
        host = hosts.get(change.enabled[0])
        if host is None or not host.up:
            continue
        if not host.mapped:
            yield values.NextStep(
                kind=_Kind.MAP, host=host.name,
                command=nova_filters.DISCOVER_COMMAND)
        if not host.enabled:
            yield values.NextStep(
                kind=_Kind.ENABLE, host=host.name, command=(
                    'openstack', 'compute', 'service', 'set', '--enable', '--',
                    host.name, 'nova-compute'))


def _has_flavor(cloud: snapshot.Cloud, flavor: snapshot.Flavor) -> bool:
    return any(
        (each.name, each.vcpus, each.memory, each.extra_specs) == (
            flavor.name, flavor.vcpus, flavor.memory, flavor.extra_specs)
        for each in cloud.flavors)


def _shortage_of(cause: values.CommonCause) -> reasons.Shortage | None:
    return None if cause.refusal is None else cause.refusal.shortage


def _is_of_amount(cause: values.CommonCause) -> bool:
    """Return whether hosts have too little of something."""
    shortage = _shortage_of(cause)
    if shortage is not None:
        return cause.kind is values.CauseKind.SHORTAGE or shortage.of_limit
    need = None if cause.lack is None else cause.lack.need
    return need is not None and need.kind == 'resource'


class _Amounts:
    """The amounts of what is missing.

    :param hosts: the hosts that can be used
    :ivar needed: amount that is needed at once
    :ivar of_limit: whether a limit leaves too little
    """

    def __init__(self, explanation: values.Explanation,
                 cause: values.CommonCause,
                 requested: request.ExplainedRequest,
                 hosts: Sequence[snapshot.Host]):
        self._explained = {host.name: host for host in explanation.hosts}
        self._shortage = _shortage_of(cause)
        self._lack = cause.lack
        self._requested = requested
        self._hosts = hosts
        self.of_limit = False
        if self._shortage is not None:
            self.needed = self._shortage.amount.needed
            self.of_limit = self._shortage.of_limit
        else:
            assert cause.lack is not None and cause.lack.need is not None
            (self._class, self.needed), = cause.lack.need.resources.items()

    def largest(self) -> int | None:
        """Return the most on a place that is empty; None if not known."""
        if self.of_limit:
            return self._most_of_limits()
        amounts = self._counts(free=False)
        return None if amounts is None else max(amounts, default=0)

    def free(self) -> int:
        """Return what is free on all places that may be chosen."""
        shortage = self._shortage
        if shortage is None or (shortage.of_node and not shortage.places):
            amounts = self._counts(free=True)
            if amounts is not None:
                return sum(amounts)
        return sum(self._explained_free(host) for host in self._hosts
                   if host.name in self._explained)

    def may_be_joined(self, free: int) -> bool:
        """Return whether moves may bring what is free together."""
        shortage = self._shortage
        if shortage is None or not shortage.beside:
            return free >= self.needed
        # Some of these may be free on other NUMA nodes than the rest is.
        nodes = self.needed if (
            shortage.amount.resource is _Resource.NUMA_NODES) else 1
        amounts = [(nodes * each.needed, self._counts_of(each, free=True))
                   for each in (shortage.amount, *shortage.beside)
                   if each.resource is not _Resource.NUMA_NODES]
        return all(counts is None or sum(counts) >= needed
                   for needed, counts in amounts)

    def _most_of_limits(self) -> int | None:
        """Return the most that an empty host may carry."""
        most = 0
        for host in self._hosts:
            shortage = self._of_host(host)
            if shortage is None or shortage.most is None:
                return None
            most = max(most, shortage.most)
        return most

    def _of_host(self, host: snapshot.Host) -> reasons.Shortage | None:
        """Return the same shortage of a host, the smallest; None if not."""
        explained = self._explained.get(host.name)
        shortage = self._shortage
        assert shortage is not None
        return max((
            each.shortage for each in explained and explained.refusals or ()
            if each.shortage is not None
            and each.shortage.amount == shortage.amount
            and each.shortage.places == shortage.places),
            key=lambda each: each.free, default=None)

    def _explained_free(self, host: snapshot.Host) -> int:
        """Return what is free on a host, by the explanation."""
        if self._shortage is None:
            assert self._lack is not None
            for lack in self._explained[host.name].lacks:
                if lack.need == self._lack.need:
                    return lack.free or 0
            # A host that is not short of it has enough; how much more is not
            # known.
            return self.needed
        shortage = self._of_host(host)
        if shortage is not None:
            return shortage.free
        # Other NUMA nodes are not known; a host that is not short has enough.
        return 0 if self._shortage.places else self.needed

    def _counts(self, free: bool) -> list[int] | None:
        if self._shortage is not None:
            return self._counts_of(self._shortage.amount, free)
        if self._class == _PCPU:
            return [sum(len(node.free if free else node.dedicated)
                        for node in host.nodes or ())
                    for host in self._hosts]
        if not all(host.providers for host in self._hosts):
            return None
        inventories = [
            provider.inventories[self._class] for host in self._hosts
            for provider in host.providers
            if self._class in provider.inventories]
        return [max(each.capacity - each.used, 0) if free
                else min(each.capacity, each.max_unit)
                for each in inventories]

    def _counts_of(self, amount: reasons.Amount,
                   free: bool) -> list[int] | None:
        """Return the amount on each place; None if not known.

        Of PCI devices, all of their kind are counted; their networks are not
        looked at.
        """
        if amount.resource is _Resource.PCI_DEVICES:
            return [sum(
                device.kind == _DEVICES.get(amount.noun, device.kind)
                and device.status not in occupied.GONE
                and (not free or device.status == occupied.AVAILABLE)
                for device in host.devices) for host in self._hosts]
        if amount.resource is _Resource.NUMA_NODES:
            return None if free else [
                len(host.nodes or ()) for host in self._hosts]
        counts = [_of_node(host, node, amount.resource, self._has_size, free)
                  for host in self._hosts for node in host.nodes or ()]
        amounts = [count for count in counts if count is not None]
        return amounts if len(amounts) == len(counts) else None

    def _has_size(self, pages: snapshot.Pages) -> bool:
        """Return whether the request can have such pages.

        An image can choose among those of a flavor with "large" or "any".
        """
        value = self._requested.image.get('hw_mem_page_size') or (
            self._requested.flavor.extra_specs.get(relaxation.PAGE_SIZE, ''))
        size = relaxation.page_kib(value)
        if size is None:
            return value.lower() == 'any' or pages.size > relaxation.SMALL
        return pages.size == size


def _of_node(host: snapshot.Host, node: snapshot.Node,
             resource: reasons.Resource,
             has_size: Callable[[snapshot.Pages], bool],
             free: bool) -> int | None:
    """Return the amount of a resource on a NUMA node; None if not known.

    :param has_size: tells which pages count
    """
    match resource:
        case _Resource.DEDICATED_CPUS | _Resource.CPU_THREADS:
            return len(node.free if free else node.dedicated)
        case _Resource.PAGES:
            # A guest NUMA node has pages of one size.
            return max(((pages.free if free else pages.usable) * pages.size
                        for pages in node.pages if has_size(pages)),
                       default=0) // 1024
        case _Resource.MEMORY:
            return max(node.memory - node.memory_used * free, 0)
        case _Resource.SHARED_CPUS:
            return len(node.shared)
        case _Resource.SHARED_VCPUS if host.cpu_ratio is not None:
            return max(int(len(node.shared) * host.cpu_ratio)
                       - node.shared_used * free, 0)
        case _Resource.MEMORY_RATIO if host.memory_ratio is not None:
            return max(int(node.memory * host.memory_ratio)
                       - node.memory_used * free, 0)
    return None
