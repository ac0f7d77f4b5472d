# SPDX-License-Identifier: Apache-2.0
"""Run all lint rules on flavors.

Each flavor is read once, by Nova's own code (:func:`read`); the rules check
the result.  To add a rule, add a function to one of these modules, and a line
to :data:`RULES`.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import itertools
import types
import typing as ty

from nova import exception
import os_traits

from nfv_sched.base import extra_specs
from nfv_sched.base import strings
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.numa import topology
from nfv_sched.fit import rules as nfv_rules
from nfv_sched.nova import flavors
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.ops.answers.flavors import document
from nfv_sched.ops.answers.flavors.lint import flavor as lint_flavor
from nfv_sched.ops.answers.flavors.lint import hosts
from nfv_sched.ops.answers.flavors.lint import images
from nfv_sched.ops.answers.flavors.lint import keys
from nfv_sched.ops.answers.flavors.lint import values
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.simulator.placement import malformed
from nfv_sched.scheduler import notes

#: All rules, in the order in which they run.
RULES = (
    values.LintRule('too-many-keys', keys.too_many),
    values.LintRule('form-refused', keys.misshapen),
    values.LintRule('value-refused', keys.values_refused),
    values.LintRule('key-refused', keys.keys_refused),
    values.LintRule('numbers-of-vcpus', keys.huge_lists),
    values.LintRule('numbers-of-numa-nodes', keys.huge_nodes),
    values.LintRule('contradictions', keys.contradictions),
    values.LintRule('refused-by-nova', lint_flavor.refusals),
    values.LintRule('no-host-by-rules', lint_flavor.unplaceable),
    values.LintRule('query-refused', lint_flavor.query_refused),
    values.LintRule('page-multiple', lint_flavor.page_multiple),
    values.LintRule('absurd-devices', lint_flavor.absurd_devices),
    values.LintRule('image-value-refused', images.refused),
    values.LintRule('image-conflict', images.conflicts),
    values.LintRule('smaller-than-the-image', images.too_small),
    values.LintRule('unknown-alias', hosts.alias),
    values.LintRule('page-size-of-no-host', hosts.pages),
    values.LintRule('threads-of-no-host', hosts.threads),
    values.LintRule('memory-of-the-platform', hosts.small_pages),
    values.LintRule('beside-floating-servers', hosts.floating),
    values.LintRule('label-of-no-host', hosts.labels),
    values.LintRule('node-of-no-host', hosts.nodes),
    values.LintRule('no-host', hosts.no_host),
    values.LintRule('filter-not-enabled', hosts.unkept),
    values.LintRule('key-unchecked', keys.keys_unchecked),
    values.LintRule('no-topology', lint_flavor.no_topology),
    values.LintRule('switch-without-huge-pages', lint_flavor.switch_pages),
    values.LintRule('any-pages', lint_flavor.any_pages),
    values.LintRule('odd-threads', lint_flavor.odd_threads),
    values.LintRule('isolate', lint_flavor.isolated),
    values.LintRule('many-devices', lint_flavor.many_devices),
    values.LintRule('alias-without-policy', lint_flavor.alias_policy),
    values.LintRule('ignored', lint_flavor.ignored),
    values.LintRule('image-needed', images.needed),
    values.LintRule('image-dropped', images.dropped),
    values.LintRule('image-differs', images.differ),
    values.LintRule('straddles', hosts.straddles),
    values.LintRule('in-use', lint_flavor.used),
    values.LintRule('only-vfs', lint_flavor.only_vfs),
    values.LintRule('packs-badly', hosts.packs),
)

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

# Images that a flavor may require: memory encryption needs UEFI, and some
# models need stateless firmware.
_IMAGES = ({'hw_firmware_type': 'uefi'},
           {'hw_firmware_type': 'uefi', 'hw_firmware_stateless': 'true'})

_NO_IMAGE: Mapping[str, str] = types.MappingProxyType({})


def findings(subject: values.LintSubject) -> list[document.FlavorFinding]:
    """Return the findings of all rules about a flavor, errors first."""
    results: list[document.FlavorFinding] = []
    for rule in RULES:
        errors = {each.key for each in results
                  if each.severity == values.ERROR}
        if rule.name in _WITHOUT_ERRORS and errors:
            continue
        # keys.too_many has reported it; the other rules would take minutes.
        if len(subject.flavor.extra_specs) > extra_specs.MOST_SPECS and (
                results):
            break
        for each in dict.fromkeys(rule.find(subject)):
            key = None if each.key == values.WHOLE else strings.short(
                each.key, _LONGEST_KEY)
            if rule.name in _ONCE_PER_KEY and key in errors:
                continue
            results.append(document.FlavorFinding(
                flavor=subject.flavor.name,
                flavor_id=subject.flavor.id or None, rule=rule.name,
                severity=ty.cast(ty.Any, each.severity),
                key=key, finding=strings.short(each.text),
                do=strings.short(each.do)))
    return sorted(results, key=lambda each: values.SEVERITIES.index(
        each.severity))


def lint(
    flavors_to_check: Sequence[snapshot.Flavor], *,
    image: Mapping[str, str] = _NO_IMAGE,
    needs: values.Needs = values.Needs(),
    cloud: snapshot.Cloud | None = None, on_hosts: bool = False,
    used: bool = False,
    update: Callable[[int, int], None] = lambda done, total: None,
) -> list[document.FlavorFinding]:
    """Return the findings of all rules about some flavors.

    :param image: properties of the image that servers are booted with
    :param cloud: the cloud, for ``on_hosts`` and ``used``
    :param on_hosts: also check whether hosts accept the flavors
    :param used: also check whether servers have the flavors
    :param update: called with (flavors done, total flavors)
    :raises nfv_sched.ops.cloud.problems.InputError: if a filter of
        the cloud is not installed, or one of its options is invalid
    """
    subjects = [dataclasses.replace(read(each, image), needs=needs)
                for each in flavors_to_check]
    if cloud is not None and used:
        subjects = [dataclasses.replace(each, servers=tuple([
            server for server in cloud.servers
            if server.flavor.name == each.flavor.name]))
            for each in subjects]
    if cloud is not None and on_hosts:
        subjects = _on_hosts(subjects, in_service(cloud), update)
    return [each for subject in subjects for each in findings(subject)]


def read(flavor: snapshot.Flavor,
         image: Mapping[str, str] = _NO_IMAGE) -> values.LintSubject:
    """Read a flavor as Nova and nfv-sched read it."""
    if len(flavor.extra_specs) > extra_specs.MOST_SPECS:
        return values.LintSubject(flavor=flavor, image=dict(image),
                                  unread=True)
    refused = {}
    for key, value in flavor.extra_specs.items():
        message = flavors.refusal(key, value)
        if message is not None:
            refused[key] = message
    subject = values.LintSubject(
        flavor=flavor, image=dict(image), specs=flavors.specs(),
        refused=refused, policy=extra_specs.parse(flavor.extra_specs),
        faults=tuple(nfv_rules.faults(flavor.extra_specs)))
    if any(keys.is_huge(key, value) or keys.is_many_nodes(key, value)
           for source in (flavor.extra_specs, image)
           for key, value in source.items()) or (
               flavor.vcpus >= flavors.MOST_VCPUS):
        return dataclasses.replace(subject, unread=True)
    nova_flavor = flavors.flavor(
        flavor.name, flavor.vcpus, flavor.memory, flavor.extra_specs)
    bare = flavors.image({})
    errors = {}
    for key, value in image.items():
        try:
            flavors.image({key: value})
        except flavors.ImageError as exc:
            errors[key] = str(exc)
    refusals = flavors.refusals(nova_flavor, bare)
    with_image: list[flavors.FlavorRefusal] = []
    meta = bare
    needed: Mapping[str, str] = _NO_IMAGE
    if refusals and not image:
        needed = _image_needed(nova_flavor)
        if needed:
            meta, refusals = flavors.image(needed), []
    if image:
        try:
            meta = flavors.image({key: value for key, value in image.items()
                                  if key not in errors})
        except flavors.ImageError as exc:
            errors[values.WHOLE] = str(exc)
        # An image can also make a refused flavor acceptable.
        with_image = flavors.refusals(nova_flavor, meta)
        refusals = [each for each in refusals if each in with_image]
    numa_topology = None
    if not with_image and not refusals:
        numa_topology = flavors.numa_topology(nova_flavor, meta)
    policy = extra_specs.parse(flavor.extra_specs, meta.properties)
    guest = topology.guest(numa_topology)
    properties = {key: value for key, value in image.items()
                  if key not in errors}
    return dataclasses.replace(
        subject, refusals=tuple([
            _with_keys(each, flavor, needed) for each in refusals]),
        image_errors=errors,
        image_needed=needed,
        image_refusals=tuple([
            _with_keys(each, flavor, properties)
            for each in with_image if each not in refusals]),
        policy=policy, guest=guest,
        rules=tuple(_rules(numa_rule.RequestParts(
            policy, {key: value for key, value in flavor.extra_specs.items()
                     if key not in refused},
            meta.properties, guest, numa_topology, (), frozenset(), False,
            False))),
        **({} if refusals or with_image else _on_any_host(
            flavor, nova_flavor, meta, numa_topology)))


def _with_keys(
    refusal: flavors.FlavorRefusal, flavor: snapshot.Flavor,
    image: Mapping[str, str],
) -> flavors.FlavorRefusal:
    """Return a refusal with the keys without which Nova would not refuse.

    :param image: image properties that Nova can read
    """
    def is_needed(specs: Mapping[str, str], image: Mapping[str, str]) -> bool:
        # True if Nova accepts this, or refuses it for another reason.
        try:
            return all(each.kind != refusal.kind for each in flavors.refusals(
                flavors.flavor(flavor.name, flavor.vcpus, flavor.memory,
                               specs), flavors.image(image)))
        except flavors.ImageError:
            return False

    specs = flavor.extra_specs
    return refusal._replace(keys=(
        *(key for key in specs if is_needed(_drop_key(specs, key), image)),
        *(key for key in image if is_needed(specs, _drop_key(image, key)))))


def _drop_key(values_by_key: Mapping[str, str], key: str) -> dict[str, str]:
    return {each: value for each, value in values_by_key.items()
            if each != key}


def _image_needed(nova_flavor: ty.Any) -> Mapping[str, str]:
    """Return image properties with which Nova accepts the flavor; or none."""
    return next((each for each in _IMAGES if not flavors.refusals(
        nova_flavor, flavors.image(each))), _NO_IMAGE)


def _rules(request_parts: numa_rule.RequestParts) -> Iterator[numa_rule.Rule]:
    for cls in nfv_rules.classes():
        with contextlib.suppress(numa_rule.RequestError):
            yield from cls.from_request(request_parts)


def _on_any_host(flavor: snapshot.Flavor, nova_flavor: ty.Any, meta: ty.Any,
                 numa_topology: ty.Any) -> dict[str, ty.Any]:
    """Return the fields about what refuses all hosts, whatever they have."""
    fields: dict[str, ty.Any] = {}
    nova_flavor.root_gb = flavor.disk + flavor.ephemeral
    nova_flavor.swap = flavor.swap
    spec = flavors.request(nova_flavor, meta, numa_topology)
    error = notes.note_of(spec).read(spec).error
    if error is not None:
        fields['unplaceable'] = (
            keys.policy_key(error.policy, nova_flavor), str(error))
    with contextlib.suppress(exception.NovaException, ValueError):
        faults = [malformed.find(query.to_querystring()) for query
                  in flavors.placement_requests(None, spec, None)]
        # Nova goes on with the fallback query.
        if all(faults):
            fields['query_fault'] = faults[0]
    return fields


# On hosts


def in_service(cloud: snapshot.Cloud) -> snapshot.Cloud:
    disabled = os_traits.COMPUTE_STATUS_DISABLED
    return dataclasses.replace(cloud, hosts=tuple([dataclasses.replace(
        host, enabled=True, up=True, mapped=True, disabled_reason=None,
        network=None,
        providers=tuple([dataclasses.replace(
            provider, traits=provider.traits - {disabled})
            for provider in host.providers])) for host in cloud.hosts]))


def _on_hosts(
    subjects: Sequence[values.LintSubject], cloud: snapshot.Cloud,
    update: Callable[[int, int], None],
) -> list[values.LintSubject]:
    with_hosts = []
    with capacity.counting_on(cloud, True, 0) as counting:
        options = nova_scheduler.CONF.nfv_sched
        names = numa_rule.Names(options.vswitch_label,
                                options.node_label_prefix)
        for number, subject in enumerate(subjects):
            update(number, len(subjects))
            if not subject.unread and not hosts.too_many(subject):
                subject = dataclasses.replace(subject, hosts=_hosts(
                    subject, cloud, counting, names))
            with_hosts.append(subject)
    update(len(subjects), len(subjects))
    return with_hosts


def _hosts(subject: values.LintSubject, cloud: snapshot.Cloud,
           counting: capacity.Counting,
           names: numa_rule.Names) -> values.FlavorHosts:
    image = {} if values.WHOLE in subject.image_errors else {
        key: value for key, value in subject.image.items()
        if key not in subject.image_errors}
    image.update(subject.image_needed)
    counted = _count(subject.flavor, image, counting)
    flavor_hosts = values.FlavorHosts(
        cloud=cloud, capacity=counted, names=names,
        filters=frozenset(nova_scheduler.enabled_filters()))
    if counted.fits or counted.error is not None:
        return flavor_hosts
    if any(each.kind is capacity.BindingKind.TOO_SMALL
           for host in counted.hosts.values() for each in host.binding):
        helping = (each for each in hosts.other_nodes(subject, cloud)
                   if _count(dataclasses.replace(
                       subject.flavor, extra_specs={
                           **subject.flavor.extra_specs, **each}),
                       image, counting).fits)
        flavor_hosts = dataclasses.replace(flavor_hosts, fits_with=tuple(
            itertools.islice(helping, _DIVISIONS)))
    if subject.policy.vswitch != extra_specs.STRICT:
        return flavor_hosts
    nodes = flavor_hosts.nodes
    if any(names.vswitch in node.physnets for node in nodes) or not any(
            node.physnets or node.tunneled for node in nodes):
        return flavor_hosts
    # On a host without the label, the rule looks at the networks of the
    # request. Here it has none, so count without the policy.
    without = {key: value for key, value in
               subject.flavor.extra_specs.items()
               if key not in (extra_specs.VSWITCH_NUMA_AFFINITY, extra_specs.
                              SYNONYMS[extra_specs.VSWITCH_NUMA_AFFINITY])}
    other = _count(dataclasses.replace(
        subject.flavor, extra_specs=without), image, counting)
    return dataclasses.replace(flavor_hosts, fits_with_networks=other.fits > 0)


def _count(flavor: snapshot.Flavor, image: Mapping[str, str],
           counting: capacity.Counting) -> capacity.FlavorCapacity:
    try:
        return counting.capacity(flavor, image=image)
    except Exception as exc:
        return capacity.FlavorCapacity(
            flavor, 0, 0, {}, f'{type(exc).__name__}: {exc}')
