# SPDX-License-Identifier: Apache-2.0
"""Check a flavor against the hosts of a cloud, all of them empty."""

import collections
from collections.abc import Iterator, Mapping

import os_resource_classes as orc

from nfv_sched.base import cpu_spec
from nfv_sched.base import extra_specs
from nfv_sched.base import strings
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit import rules as nfv_rules
from nfv_sched.fit.rules import place
from nfv_sched.fit.rules import vswitch
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.ops.answers.flavors.lint import flavor as lint_flavor
from nfv_sched.ops.answers.flavors.lint import keys
from nfv_sched.ops.answers.flavors.lint import values
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import document

BindingKind = document.BindingKind

#: Part of the CPUs of a NUMA node whose waste is worth a note.
WASTE = 0.2
_ALIAS = 'pci_passthrough:alias'
# Begin of keys that describe single guest NUMA nodes.
_OF_NODES = ('hw:numa_cpus.', 'hw:numa_mem.', 'nfv:numa_node.',
             'hw:numa_node.')
_UNKNOWN = (values.WHOLE, 'run "nfv-sched flavor explain" to see what each '
            'host lacks')
# Maximum number of causes to report.
_KINDS = 3

_NODES = 'hw:numa_nodes'
_FEWER, _LESS = 'take fewer vCPUs', 'take less memory'
# Resource class, or kind of limiting resource -> (key, what to do).
_CLASSES = {
    orc.PCPU: ('vCPUs', _FEWER),
    orc.VCPU: ('vCPUs', 'set [compute] cpu_shared_set on hosts, or take fewer '
               'vCPUs'),
    orc.MEMORY_MB: ('RAM', _LESS),
    orc.DISK_GB: ('disk', 'take a smaller disk'),
}
_BOUND = {
    BindingKind.CPUS: ('vCPUs', _FEWER),
    BindingKind.CPUS_ON_NODES: ('vCPUs', _FEWER),
    BindingKind.NUMA_NODES: (_NODES, 'take fewer NUMA nodes'),
    BindingKind.PAGES: ('hw:mem_page_size', 'reserve such pages on the hosts, '
                        'or ' + _LESS),
    BindingKind.MEMORY: ('RAM', _LESS),
    BindingKind.THREADS: ('hw:cpu_thread_policy', 'remove it, or take another '
                          'number of vCPUs'),
    BindingKind.SHARED_CPUS: ('hw:cpu_policy',
                              'set [compute] cpu_shared_set on hosts'),
}


def alias(subject: values.LintSubject) -> values.Findings:
    hosts = subject.hosts
    if hosts is not None and hosts.capacity.unknown_alias is not None:
        yield values.error(
            _ALIAS, '[pci] alias of the cloud has no '
            f'{hosts.capacity.unknown_alias}', 'define it in the nova.conf of '
            'nova-api and of the hosts, or correct the name')


def pages(subject: values.LintSubject) -> values.Findings:
    if subject.hosts is None or not subject.hosts.none_fits:
        return
    page_size = subject.guest.cells[0].pagesize if subject.guest else None
    nodes = subject.hosts.nodes
    sizes = {each.size for node in nodes for each in node.pages if each.total}
    if page_size and page_size > 0 and nodes and page_size not in sizes:
        have = ', '.join(map(strings.size, sorted(sizes)))
        yield values.error(
            'hw:mem_page_size', 'no host has pages of '
            f'{strings.size(page_size)}; there are: {have or "none"}', 'take '
            'one of these sizes, or reserve such pages on the hosts')


def small_pages(subject: values.LintSubject) -> values.Findings:
    """Yield a finding if servers would use memory reserved on a host.

    Nova counts huge pages as memory for a server without a page size.
    """
    hosts, guest = subject.hosts, subject.guest
    if hosts is None or guest is not None and guest.cells[0].pagesize:
        return
    needed = subject.flavor.memory
    lacking = [
        host.name for host in hosts.that_fit
        if (small := view.small_pages(host, [
            server for server in hosts.cloud.servers
            if server.host == host.name])) is not None
        and small.total_mib - small.reserved_mib < needed]
    if lacking:
        yield values.warning(
            'hw:mem_page_size', f'without a page size its {needed} MiB are '
            f'small pages, which {strings.count(len(lacking), "host")} that '
            f'Nova takes have only for the platform: {strings.some(lacking)}',
            'set hw:mem_page_size, or reserve fewer huge pages there')


def floating(subject: values.LintSubject) -> values.Findings:
    hosts, guest = subject.hosts, subject.guest
    if hosts is None or guest is None or guest.cells[0].pagesize or not any(
            cell.dedicated for cell in guest.cells):
        return
    beside = {server.host for server in hosts.cloud.servers
              if not server.nodes}
    names = [host.name for host in hosts.that_fit
             if host.nodes and host.name in beside]
    if names:
        yield values.warning(
            'hw:mem_page_size', 'without a page size it shares small pages '
            'with servers without NUMA nodes, whose memory Nova counts on no '
            f'NUMA node: {strings.count(len(names), "host")}: '
            f'{strings.some(names)}', 'set hw:mem_page_size=2MB or 1GB, or '
            'keep such servers off')


def threads(subject: values.LintSubject) -> values.Findings:
    hosts, guest = subject.hosts, subject.guest
    if hosts is None or guest is None or not hosts.none_fits or (
            not hosts.nodes):
        return
    plain = [node for node in hosts.nodes
             if not any(len(core) > 1 for core in node.siblings)]
    if guest.isolates and not plain:
        key, value = lint_flavor.threads_spec(subject)
        yield values.error(
            key, 'isolate: all hosts have hyperthreading, and Nova cannot '
            'keep the sibling threads of cpu_dedicated_set idle',
            f'set {value}, and twice the vCPUs')
    if guest.requires_siblings and len(plain) == len(hosts.nodes):
        key, value = lint_flavor.threads_spec(subject, 'isolate')
        yield values.error(key, 'require: no host has hyperthreading',
                           f'set {value}, or remove it')


def labels(subject: values.LintSubject) -> values.Findings:
    hosts = subject.hosts
    if hosts is None or hosts.capacity.fits:
        return
    options = nova_scheduler.CONF.nfv_sched
    names = numa_rule.Names(options.vswitch_label, options.node_label_prefix)
    declared = {name for node in hosts.nodes for name in node.physnets}
    for rule in subject.rules:
        if not isinstance(rule, numa_rule.CellsRule) or not rule.strict:
            continue
        label = rule.label(names)
        if label is None or label in declared:
            continue
        key = keys.policy_key(rule.text, subject.flavor)
        do = f'declare {label} in the nova.conf of the hosts'
        if not isinstance(rule, vswitch.VSwitchRule):
            if isinstance(rule, place.PlaceRule):
                do = f'{do}, or correct the name of the place'
            if hosts.none_fits:
                yield values.error(
                    key, f'strict: no host has the label {label}', do)
            continue
        do = (f'declare the label {label} in the nova.conf of the hosts, see '
              'the labels in the documentation')
        if hosts.none_fits:
            yield values.error(
                key, f'strict: no host declares by the label {label} where '
                'its virtual switch runs', do)
        else:  # physical networks can also show where the switch runs
            yield values.warning(
                key, f'strict: no host has the label {label}; only those take '
                'a server that are near all of its physical networks', do)


def nodes(subject: values.LintSubject) -> values.Findings:
    hosts = subject.hosts
    if hosts is None or not hosts.none_fits or not hosts.nodes:
        return
    numbers = {node.number for node in hosts.nodes}
    policy = subject.policy
    for (_guest, number), key in zip(policy.node_map, policy.node_keys):
        if number not in numbers:
            yield values.error(
                key, f'no host has a NUMA node {number}; there are: '
                f'{", ".join(map(str, sorted(numbers)))}', 'name one of these')


def no_host(subject: values.LintSubject) -> values.Findings:
    """Find the reasons if the flavor fits no host, even an empty one."""
    hosts = subject.hosts
    if hosts is None or not hosts.none_fits:
        return
    if not hosts.cloud.hosts:
        yield values.warning(
            values.WHOLE, 'the cloud has no hosts to compare with', 'leave '
            'out --hosts')
        return
    for unknown in hosts.capacity.unknown:
        key = next((key for key in subject.flavor.extra_specs
                    if key.rpartition(':')[2] == unknown.name), values.WHOLE)
        yield values.error(
            key, f'Placement knows no {unknown}: it refuses each request, and '
            'Nova takes no server', 'create it with "openstack '
            f'{unknown.kind} create", or correct the name')
    if hosts.capacity.unknown:
        return
    if hosts.capacity.error is not None:
        yield values.error(
            values.WHOLE, 'Nova takes no server of it in this cloud: '
            f'{" ".join(hosts.capacity.error.split())}', 'correct what Nova '
            'names')
        return
    first = [each.limits[0] for each in hosts.capacity.hosts.values()
             if each.limits]
    alike: dict[str, list[document.HostLimit]] = collections.defaultdict(list)
    for each in first:
        # The text of a policy has the NUMA nodes of its host.
        alike[each.why if each.kind is BindingKind.POLICY
              else each.label].append(each)
    commonest = sorted(alike.items(), key=lambda item: -len(item[1]))
    causes = [f'{_cause(same[0])} ({strings.count(len(same), "host")})'
              for _label, same in commonest[:_KINDS]]
    key, do = _key_and_do(commonest[0][1][0], subject) if first else _UNKNOWN
    yield values.error(key, ': '.join(filter(None, (
        'it fits no host, even an empty one', '; '.join(causes)))), do)


def _cause(limit: document.HostLimit) -> str:
    # These texts name it.
    if limit.kind in (BindingKind.POLICY, BindingKind.TOO_SMALL):
        return limit.why
    return f'{limit.label} ({limit.why})'


def _key_and_do(limit: document.HostLimit,
                subject: values.LintSubject) -> tuple[str, str]:
    specs, name = subject.flavor.extra_specs, limit.name
    match limit.kind:
        case BindingKind.POLICY if key := keys.policy_key(
                name, subject.flavor):
            if not subject.guest:
                return key, lint_flavor.GIVE_TOPOLOGY
            return key, ('take fewer vCPUs, or remove it'
                         if limit.allowed_nodes else
                         'remove it, or declare on hosts what it needs')
        case BindingKind.TRAIT:
            return f'trait:{name}', 'remove it, or add hosts with this trait'
        case BindingKind.TOO_SMALL:
            return _too_large(subject, limit)
        case BindingKind.RESOURCE_CLASS if f'resources:{name}' in specs:
            return (f'resources:{name}',
                    'ask for less of it, or add hosts with it')
        case BindingKind.RESOURCE_CLASS:
            return _CLASSES.get(name, _UNKNOWN)
        case BindingKind.DEVICES | BindingKind.DEVICES_NEAR if (
                _ALIAS in specs):
            return _ALIAS, 'ask for fewer devices'
    return _BOUND.get(limit.kind, _UNKNOWN)


def _too_large(subject: values.LintSubject,
               limit: document.HostLimit) -> tuple[str, str]:
    """Return the key of what host NUMA nodes lack first, and what to do."""
    key, do = _BOUND.get(limit.lacks[0].kind, _UNKNOWN) if (
        limit.lacks) else _UNKNOWN
    if subject.hosts.fits_with:
        divisions = [', '.join(f'{key}={value}' for key, value in each.items())
                     for each in subject.hosts.fits_with]
        do = f'set {" or ".join(divisions)}, or {do}'
    return _NODES if key == 'vCPUs' and (
        _NODES in subject.flavor.extra_specs) else key, do


def other_nodes(subject: values.LintSubject,
                cloud: snapshot.Cloud) -> Iterator[Mapping[str, str]]:
    """Yield other divisions of a flavor into NUMA nodes, as extra specs.

    Evenly into up to the number of NUMA nodes that hosts have; then unevenly,
    by the CPUs of the nodes of a host.
    """
    flavor, guest = subject.flavor, subject.guest
    if guest is None or any(key.startswith(_OF_NODES)
                            for key in flavor.extra_specs):
        return
    cells = len(guest.cells)
    sizes = {tuple(sorted(len(node.dedicated) for node in host.nodes or ()))
             for host in cloud.hosts}
    for count in range(1, max(map(len, sizes), default=0) + 1):
        if count != cells and not (flavor.vcpus % count
                                   or flavor.memory % count):
            yield {_NODES: str(count)}
    page = max(guest.cells[0].pagesize or 0, 1024) // 1024
    for of_host in sorted(sizes):
        specs, first, memory = {}, 0, 0
        # A small node gets all that it can take, the others share the rest.
        for number, size in enumerate(of_host[-cells:] if cells > 1 else ()):
            sharing = cells - number
            count = min(size, (flavor.vcpus - first) // sharing)
            share = flavor.memory - memory if sharing == 1 else (
                flavor.memory * count // flavor.vcpus // page * page)
            specs[f'hw:numa_cpus.{number}'] = cpu_spec.to_text(
                range(first, first + count))
            specs[f'hw:numa_mem.{number}'] = str(share)
            first, memory = first + count, memory + share
        if len(specs) == 2 * cells and first == flavor.vcpus:
            yield specs


def unkept(subject: values.LintSubject) -> values.Findings:
    if subject.hosts is None:
        return
    enabled = set(nova_scheduler.enabled_filters())
    for cls in nfv_rules.classes():
        if enabled.intersection(cls.filters):
            continue
        prefixes = {key[:key.find('.') + 1] or key for key in cls.keys}
        prefixes |= {extra_specs.SYNONYMS[prefix] for prefix in prefixes
                     if prefix in extra_specs.SYNONYMS}
        for key in subject.flavor.extra_specs:
            if key in prefixes or key[:key.find('.') + 1] in prefixes:
                yield values.warning(
                    key, 'no enabled filter keeps it: '
                    f'{" or ".join(cls.filters)} needed', 'add it to '
                    '[filter_scheduler] enabled_filters of nova-scheduler')


def straddles(subject: values.LintSubject) -> values.Findings:
    if subject.hosts is None or subject.guest is not None or (
            not subject.readable or not subject.hosts.nodes):
        return
    most = max(len(node.shared | node.dedicated)
               for node in subject.hosts.nodes)
    memory = max(node.memory for node in subject.hosts.nodes)
    flavor = subject.flavor
    if flavor.vcpus > most or flavor.memory > memory:
        what = (f'{flavor.vcpus} vCPUs, and the largest NUMA node has {most} '
                'CPUs' if flavor.vcpus > most else
                f'{flavor.memory} MiB, and the largest NUMA node has '
                f'{memory} MiB')
        yield values.warning(
            'hw:numa_nodes', f'{what}: it is on several nodes, and the server '
            'cannot see on which', 'set hw:numa_nodes=2')


def packs(subject: values.LintSubject) -> values.Findings:
    """Find sizes of NUMA nodes of which pinned servers leave much unused.

    Only hosts that accept the flavor count; no others have such servers.
    """
    hosts, guest = subject.hosts, subject.guest
    if hosts is None or guest is None or not hosts.capacity.fits:
        return
    need = max(cell.dedicated for cell in guest.cells) + guest.reserved
    if not need:
        return
    seen: dict[int, list[str]] = collections.defaultdict(list)
    for host in hosts.that_fit:
        for size in {len(node.dedicated) for node in host.nodes or ()}:
            seen[size].append(host.name)
    for size, names in sorted(seen.items()):
        fits, unused = divmod(size, need)
        if fits and unused >= WASTE * size:
            yield values.note(
                'vCPUs', f'{strings.count(fits, "server")} with {need} pinned '
                f'vCPUs {"leaves" if fits == 1 else "leave"} {unused} of '
                f'{size} CPUs of a NUMA node '
                f'({strings.count(len(names), "host")})', 'set a number of '
                f'vCPUs for each guest NUMA node that divides {size} evenly, '
                'or offer a small flavor that fills the rest')
