# SPDX-License-Identifier: Apache-2.0
"""Run all lint rules on flavors.

To add a rule, add a function to one of these modules, and a line to
:data:`RULES`.
"""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import dataclasses
import functools
import itertools
import typing as ty

from nfv_sched.base import extra_specs
from nfv_sched.base import strings
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.ops.answers.flavors import document
from nfv_sched.ops.answers.flavors.lint import flavor as lint_flavor
from nfv_sched.ops.answers.flavors.lint import hosts
from nfv_sched.ops.answers.flavors.lint import images
from nfv_sched.ops.answers.flavors.lint import keys
from nfv_sched.ops.answers.flavors.lint import values
from nfv_sched.ops.cloud import changed_hosts
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity

#: All rules by their identifiers, in the order in which they run.
RULES: Mapping[str, Callable[[values.LintSubject], values.Findings]] = {
    'too-many-keys': keys.too_many,
    'form-refused': keys.misshapen,
    'value-refused': keys.values_refused,
    'key-refused': keys.keys_refused,
    'numbers-of-vcpus': keys.huge_lists,
    'numbers-of-numa-nodes': keys.huge_nodes,
    'contradictions': keys.contradictions,
    'refused-by-nova': lint_flavor.refusals,
    'no-host-by-rules': lint_flavor.unplaceable,
    'query-refused': lint_flavor.query_refused,
    'page-multiple': lint_flavor.page_multiple,
    'absurd-devices': lint_flavor.absurd_devices,
    'image-value-refused': images.refused,
    'image-conflict': images.conflicts,
    'smaller-than-the-image': images.too_small,
    'unknown-alias': hosts.alias,
    'page-size-of-no-host': hosts.pages,
    'threads-of-no-host': hosts.threads,
    'memory-of-the-platform': hosts.small_pages,
    'beside-floating-servers': hosts.floating,
    'label-of-no-host': hosts.labels,
    'node-of-no-host': hosts.nodes,
    'no-host': hosts.no_host,
    'filter-not-enabled': hosts.unkept,
    'key-unchecked': keys.keys_unchecked,
    'no-topology': lint_flavor.no_topology,
    'switch-without-huge-pages': lint_flavor.switch_pages,
    'any-pages': lint_flavor.any_pages,
    'odd-threads': lint_flavor.odd_threads,
    'isolate': lint_flavor.isolated,
    'many-devices': lint_flavor.many_devices,
    'alias-without-policy': lint_flavor.alias_policy,
    'ignored': lint_flavor.ignored,
    'image-needed': images.needed,
    'image-dropped': images.dropped,
    'image-differs': images.differ,
    'straddles': hosts.straddles,
    'in-use': lint_flavor.used,
    'only-vfs': lint_flavor.only_vfs,
    'packs-badly': hosts.packs,
}

# Rules that run only if none before found an error: they would report the same
# in other words.
_WITHOUT_ERRORS = ('no-host', 'no-host-by-rules')
# Rules that report nothing about a key with an error of a previous rule.
_ONCE_PER_KEY = ('value-refused', 'key-refused', 'contradictions',
                 'refused-by-nova', 'query-refused', *_WITHOUT_ERRORS)

# Maximum number of other divisions into NUMA nodes that are named.
_DIVISIONS = 2

# Maximum length of a key that the API accepts.
_LONGEST_KEY = 255


def findings(subject: values.LintSubject) -> list[document.FlavorFinding]:
    results: list[document.FlavorFinding] = []
    for name, find in RULES.items():
        errors = {each.key for each in results
                  if each.severity == values.ERROR}
        if name in _WITHOUT_ERRORS and errors:
            continue
        # keys.too_many has reported it; the other rules would take minutes.
        if len(subject.flavor.extra_specs) > extra_specs.MOST_SPECS and (
                results):
            break
        for each in dict.fromkeys(find(subject)):
            key = None if each.key == values.WHOLE else strings.short(
                each.key, _LONGEST_KEY)
            if name in _ONCE_PER_KEY and key in errors:
                continue
            results.append(document.FlavorFinding(
                flavor=subject.flavor.name,
                flavor_id=subject.flavor.id or None, rule=name,
                severity=ty.cast(ty.Any, each.severity),
                key=key, finding=strings.short(each.text),
                do=strings.short(each.do)))
    return sorted(results, key=lambda each: values.SEVERITIES.index(
        each.severity))


def lint(flavors: Sequence[snapshot.Flavor], *,
         image: document.Image = document.Image(),
         cloud: snapshot.Cloud | None = None, on_hosts: bool = False,
         used: bool = False, update: Callable[[int, int], None] = lambda done,
         total: None) -> list[document.FlavorFinding]:
    """Return the findings of all rules about some flavors.

    :param cloud: the cloud, for ``on_hosts`` and ``used``
    :param on_hosts: also check whether hosts accept the flavors
    :param used: also check whether servers have the flavors
    :param update: called with (flavors done, total flavors)
    :raises nfv_sched.ops.cloud.problems.InputError: if a filter of
        the cloud is not installed, or one of its options is invalid
    """
    results, look = [], None
    with contextlib.ExitStack() as stack:
        if cloud is not None and on_hosts:
            serving = in_service(cloud)
            look = functools.partial(_hosts, serving, stack.enter_context(
                capacity.counting_on(
                    serving, capacity.NewServers(ports=0), empty=True)))
        for number, flavor in enumerate(flavors):
            if look is not None:
                update(number, len(flavors))
            results += findings(values.LintSubject(
                flavor=flavor, image=image, look=look, servers=tuple([
                    server for server in cloud.servers
                    if server.flavor.name == flavor.name])
                if cloud is not None and used else None))
    if look is not None:
        update(len(flavors), len(flavors))
    return results


def in_service(cloud: snapshot.Cloud) -> snapshot.Cloud:
    cloud = changed_hosts.enabled(cloud, {host.name for host in cloud.hosts})
    return dataclasses.replace(cloud, hosts=tuple([
        dataclasses.replace(host, up=True, mapped=True, network=None)
        for host in cloud.hosts]))


def _hosts(cloud: snapshot.Cloud, counting: capacity.Counting,
           subject: values.LintSubject) -> values.FlavorHosts | None:
    """Return which hosts accept a flavor; None if that takes too long."""
    if lint_flavor.devices(subject) > lint_flavor.ABSURD_DEVICES:
        return None

    def count(specs: Mapping[str, str]) -> capacity.FlavorCapacity:
        flavor = dataclasses.replace(subject.flavor, extra_specs=specs)
        try:
            return counting.capacity(flavor, image=subject.properties)
        except Exception as exc:
            return capacity.FlavorCapacity(
                flavor, {}, f'{type(exc).__name__}: {exc}')

    specs = subject.flavor.extra_specs
    counted = count(specs)
    flavor_hosts = values.FlavorHosts(cloud=cloud, capacity=counted)
    if counted.fits or counted.error is not None:
        return flavor_hosts
    if any(each.kind is capacity.BindingKind.TOO_SMALL
           for host in counted.hosts.values() for each in host.limits):
        helping = (each for each in hosts.other_nodes(subject, cloud)
                   if count({**specs, **each}).fits)
        flavor_hosts = dataclasses.replace(flavor_hosts, fits_with=tuple(
            itertools.islice(helping, _DIVISIONS)))
    nodes, label = (
        flavor_hosts.nodes, nova_scheduler.CONF.nfv_sched.vswitch_label)
    if (subject.policy.vswitch != extra_specs.STRICT
            or any(label in node.physnets for node in nodes)
            or not any(node.physnets or node.tunneled for node in nodes)):
        return flavor_hosts
    # On a host without the label, the rule looks at the networks of the
    # request. Here it has none, so count without the policy.
    key = extra_specs.VSWITCH_NUMA_AFFINITY
    return dataclasses.replace(flavor_hosts, fits_with_networks=count({
        each: value for each, value in specs.items()
        if each not in (key, extra_specs.SYNONYMS[key])}).fits > 0)
