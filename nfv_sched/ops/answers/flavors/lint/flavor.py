# SPDX-License-Identifier: Apache-2.0
"""Check a flavor as a whole: what Nova refuses, or understands otherwise."""

import contextlib
import json
import re

from nfv_sched.base import extra_specs
from nfv_sched.base import strings
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.numa import topology
from nfv_sched.ops.answers.flavors.lint import keys
from nfv_sched.ops.answers.flavors.lint import values
from nfv_sched.ops.answers.flavors import translations
from nfv_sched.ops.model import movable
from nfv_sched.ops.simulator.placement import malformed

# KiB. What a flavor asks for with 4KB; PAGES_SMALL is for the word "small".
_SMALL = 4
#: Maximum number of PCI devices that the guides recommend.
MOST_DEVICES = 8
#: More devices than any host has; Nova would make a request for each.
ABSURD_DEVICES = 1 << 12

_NODES = 'hw:numa_nodes'
#: What to do about a server without NUMA topology.
GIVE_TOPOLOGY = (
    f'set {_NODES}=1, hw:cpu_policy=dedicated or hw:mem_page_size')
_THREADS_TRAIT = 'trait:HW_CPU_HYPERTHREADING'
_THREADS_TRAITS = {'isolate': 'forbidden', 'require': 'required'}
_LISTS = ('give hw:numa_cpus.N and hw:numa_mem.N for each of the guest NUMA '
          'nodes 0, 1, ...: each vCPU once, and all of the memory')
_MIXED = ('with hw:cpu_policy=mixed set either hw:cpu_dedicated_mask or '
          'hw:cpu_realtime with its mask; with other policies neither mask '
          'of dedicated vCPUs')
_REALTIME = ('set hw:cpu_policy=dedicated, and hw:cpu_realtime_mask so that '
             'a vCPU is left that is not realtime, such as ^0, or '
             'hw:emulator_threads_policy')
_DEDICATED = 'set hw:cpu_policy=dedicated, or remove it'

# Name of Nova's exception -> (key that it is about, what to do).
_REFUSALS = {
    'InvalidNUMANodesNumber': (_NODES, 'set a number from 1'),
    'ImageNUMATopologyAsymmetric': (
        _NODES, 'set vCPUs and memory to multiples of it, or ' + _LISTS),
    'ImageNUMATopologyIncomplete': ('hw:numa_cpus.0', _LISTS),
    'ImageNUMATopologyCPUOutOfRange': ('hw:numa_cpus.0', _LISTS),
    'ImageNUMATopologyCPUDuplicates': ('hw:numa_cpus.0', _LISTS),
    'ImageNUMATopologyCPUsUnassigned': ('hw:numa_cpus.0', _LISTS),
    'ImageNUMATopologyMemoryOutOfRange': ('hw:numa_mem.0', _LISTS),
    'CPUThreadPolicyConfigurationInvalid': (
        'hw:cpu_thread_policy', _DEDICATED),
    'InvalidCPUThreadAllocationPolicy': (
        'hw:cpu_thread_policy', 'set prefer, isolate or require'),
    'InvalidCPUAllocationPolicy': (
        'hw:cpu_policy', 'set dedicated, mixed or shared'),
    'RequiredMixedInstancePolicy': ('hw:cpu_dedicated_mask', _MIXED),
    'RequiredMixedOrRealtimeCPUMask': ('hw:cpu_policy', _MIXED),
    'InvalidMixedInstanceDedicatedMask': (
        'hw:cpu_dedicated_mask', 'leave at least one vCPU of each kind'),
    'RealtimeConfigurationInvalid': ('hw:cpu_realtime', _REALTIME),
    'RealtimeMaskNotFoundOrInvalid': ('hw:cpu_realtime_mask', _REALTIME),
    'BadRequirementEmulatorThreadsPolicy': (
        'hw:emulator_threads_policy', _DEDICATED),
    'InvalidEmulatorThreadsPolicy': (
        'hw:emulator_threads_policy', 'set share or isolate'),
    'ImageVCPULimitsRangeImpossible': (
        'hw:cpu_max_sockets', 'raise or remove a limit: the number of vCPUs '
        'must be sockets x cores x threads'),
    'MemoryPageSizeInvalid': ('hw:mem_page_size', 'set small, 2MB or 1GB'),
    'InvalidPCINUMAAffinity': (
        extra_specs.NATIVE_PCI_KEY,
        'set required, preferred, socket or legacy'),
}
_Fault = malformed.QueryFault
_QUERIES = {
    _Fault.GROUP_POLICY: 'set it to none, or to isolate if each group must '
                         'come from another provider',
    _Fault.NO_RESOURCES: 'ask for at least one VCPU, MEMORY_MB or DISK_GB',
    _Fault.NO_RESOURCES_IN_GROUP: 'add resources to the group, such as '
                                  'resources_A:VGPU=1 for trait_A, or write '
                                  'trait: for the whole host',
    _Fault.CONFLICT: 'require or forbid it, not both',
}


def refusals(subject: values.LintSubject) -> values.Findings:
    for refusal in subject.refusals:
        key, do = _REFUSALS.get(refusal.kind, ('', 'correct what Nova names'))
        specs = subject.flavor.extra_specs
        if key not in specs:
            # The same key for another guest NUMA node, else the missing key,
            # else one without which Nova would not refuse.
            like = [each for each in specs if each.startswith(
                key.removesuffix('0'))] if key.endswith('.0') else []
            key = next((each for each in (*like, key, *refusal.keys)
                        if each), values.WHOLE)
        yield values.error(key, f'Nova refuses it: {refusal.text}', do)


def unplaceable(subject: values.LintSubject) -> values.Findings:
    error, do = subject.unplaceable, 'correct the key'
    if error is None:
        return
    key = keys.policy_key(error.policy, subject.flavor)
    if key in (extra_specs.SHARED_VCPU,
               extra_specs.SYNONYMS[extra_specs.SHARED_VCPU]):
        do = ('set hw:cpu_policy=mixed and a hw:cpu_dedicated_mask without '
              'this vCPU, with a dedicated vCPU in its guest NUMA node and '
              'no thread policy')
    elif key.startswith((extra_specs.NUMA_NODE,
                         extra_specs.SYNONYMS[extra_specs.NUMA_NODE])):
        do = 'name guest NUMA nodes from 0 to hw:numa_nodes - 1'
    yield values.error(key, f'no host takes it: {error}', do)


def query_refused(subject: values.LintSubject) -> values.Findings:
    if (fault := subject.query_fault) is None:
        return
    specs = {**subject.flavor.extra_specs, **subject.image.properties}
    keys_at_fault = [
        next((key for key in specs if _asks_for(key, name)), values.WHOLE)
        for name in fault.names]
    match fault.fault:
        case _Fault.GROUP_POLICY:
            keys_at_fault = ['group_policy']
        case _Fault.NO_RESOURCES:
            keys_at_fault = [
                key for key, value in specs.items()
                if key.startswith('resources') and value == '0'][:1]
    for key in dict.fromkeys(keys_at_fault or [values.WHOLE]):
        yield values.error(
            key, 'Placement refuses each request, and Nova takes no server: '
            f'it {fault}', _QUERIES.get(fault.fault, 'correct or remove it'))


def _asks_for(key: str, name: str) -> bool:
    kind, _colon, own = key.partition(':')
    return bool(_colon) and (name in (
        own, kind.removeprefix('resources'), kind.removeprefix('trait')))


def page_multiple(subject: values.LintSubject) -> values.Findings:
    for number, cell in enumerate(subject.guest.cells
                                  if subject.guest else ()):
        if cell.pagesize and cell.pagesize > 0 and (
                cell.memory * 1024 % cell.pagesize):
            yield values.error(
                'hw:mem_page_size', f'{cell.memory} MiB of guest NUMA node '
                f'{number} are no multiple of the page size, '
                f'{strings.size(cell.pagesize)}: no host takes it', 'change '
                'the memory of the flavor, or hw:mem_page_size')
            return


def absurd_devices(subject: values.LintSubject) -> values.Findings:
    count = devices(subject)
    if count > ABSURD_DEVICES:
        yield values.error(
            'pci_passthrough:alias', f'{count} devices: no host has so many',
            'ask for fewer')


def no_topology(subject: values.LintSubject) -> values.Findings:
    if subject.guest is not None or not subject.readable:
        return
    policy = subject.policy
    policies = [(keys.policy_key(rule.text, subject.flavor), rule.strict)
                for rule in subject.rules if isinstance(rule,
                                                        numa_rule.CellsRule)]
    # The PCI rule exists only for servers with devices, so not here.
    if policy.pci in extra_specs.AFFINITIES and (
            policy.pci_key in extra_specs.PCI_KEYS):
        policies.append((policy.pci_key, policy.pci == extra_specs.STRICT))
    for (guest, _host), key in zip(policy.node_map, policy.node_keys):
        if guest:
            yield values.error(
                key, 'a server without NUMA nodes: every host is refused',
                f'set {_NODES}={guest + 1}')
        else:
            policies.append((key, True))
    for key, strict in policies:
        so = ('hosts with more than one NUMA node are refused' if strict else
              'the policy does nothing on hosts with more than one')
        yield values.warning(
            key, f'a server without NUMA nodes: {so}', GIVE_TOPOLOGY)


def switch_pages(subject: values.LintSubject) -> values.Findings:
    if subject.policy.vswitch is None or not subject.readable:
        return
    pages = subject.guest and subject.guest.cells[0].pagesize
    if pages in (None, topology.PAGES_SMALL, _SMALL):
        yield values.warning(
            subject.policy.vswitch_key, 'without huge pages a switch such as '
            'OVS-DPDK cannot reach the memory of the server', 'set '
            'hw:mem_page_size=2MB or 1GB')


def any_pages(subject: values.LintSubject) -> values.Findings:
    pages = subject.flavor.extra_specs.get(
        'hw:mem_page_size', subject.image.properties.get('hw_mem_page_size'))
    if pages in ('large', 'any'):
        yield values.warning(
            'hw:mem_page_size', f'{pages} is another size on other hosts: a '
            'migration may fail', 'set 2MB or 1GB')
    elif pages is not None and subject.readable and not (
            subject.guest and subject.guest.cells[0].pagesize):
        yield values.warning(
            'hw:mem_page_size', f'Nova takes {pages} for no page size at all',
            'set small, 2MB or 1GB')


def odd_threads(subject: values.LintSubject) -> values.Findings:
    guest = subject.guest
    if guest is None or not guest.requires_siblings:
        return
    for number, cell in enumerate(guest.cells):
        if cell.dedicated % 2:
            yield values.warning(
                threads_spec(subject)[0], f'require with {cell.dedicated} '
                f'pinned vCPUs in guest NUMA node {number}: the sibling '
                'thread of one is left over', 'make the number of vCPUs even')
            return


def isolated(subject: values.LintSubject) -> values.Findings:
    if subject.guest is not None and subject.guest.isolates and (
            subject.hosts is None):
        yield values.warning(
            threads_spec(subject)[0], 'isolate: hosts with hyperthreading and '
            'cpu_dedicated_set are refused, Nova cannot keep sibling threads '
            'idle there', 'on such hosts set '
            f'{threads_spec(subject)[1]}, and twice the vCPUs')


def threads_spec(subject: values.LintSubject,
                 policy: str = 'require') -> tuple[str, str]:
    """Return the key that sets its thread policy, and its value for one."""
    specs, key = subject.flavor.extra_specs, 'hw:cpu_thread_policy'
    if key in specs or _THREADS_TRAIT not in specs:
        return key, policy
    return _THREADS_TRAIT, _THREADS_TRAITS[policy]


def many_devices(subject: values.LintSubject) -> values.Findings:
    count = devices(subject)
    if MOST_DEVICES < count <= ABSURD_DEVICES:
        yield values.warning(
            'pci_passthrough:alias', f'{count} devices; more than '
            f'{MOST_DEVICES} are not tested', 'ask for fewer, larger ones')


def alias_policy(subject: values.LintSubject) -> values.Findings:
    if not devices(subject) or subject.policy.pci is not None:
        return
    policies = _alias_policies(subject)
    names = {part.rpartition(':')[0].strip() for part in
             subject.flavor.extra_specs['pci_passthrough:alias'].split(',')}
    if policies is not None and all(map(policies.get, names)):
        return
    unless = 'unless the alias has one, ' if policies is None else ''
    text = (f'no NUMA policy for these devices: {unless}one without NUMA '
            'information is as good as a local one')
    do = (f'set {extra_specs.PCI_NUMA_AFFINITY}, and '
          f'{extra_specs.NATIVE_PCI_KEY}')
    if not subject.guest:
        text = ('no NUMA policy, and a server without NUMA nodes: devices may '
                'be anywhere')
        do = f'{do}, and {_NODES}=1'
    yield values.warning('pci_passthrough:alias', text, do)


def _alias_policies(
    subject: values.LintSubject,
) -> dict[str, str | None] | None:
    """Return the NUMA policy of each alias of the cloud; None if not known."""
    if subject.hosts is None:
        return None
    policies = {}
    for text in subject.hosts.cloud.options.get('pci', {}).get('alias', ()):
        # Nova refuses to start with others.
        with contextlib.suppress(ValueError, AttributeError):
            alias = json.loads(text)
            policies[alias.get('name')] = alias.get('numa_policy')
    return policies


def ignored(subject: values.LintSubject) -> values.Findings:
    specs = subject.flavor.extra_specs
    if 'hw:cpu_realtime_mask' in specs and not translations.is_true(
            specs.get('hw:cpu_realtime', '')):
        yield values.warning(
            'hw:cpu_realtime_mask', 'it does nothing without hw:cpu_realtime',
            'set hw:cpu_realtime=true, or remove it')
    if not subject.readable:
        return
    for begin in ('hw:numa_cpus.', 'hw:numa_mem.'):
        numbers = sorted(
            (int(key.removeprefix(begin)), key) for key in specs
            # The API refuses longer keys, and int() longer numbers.
            if re.fullmatch(re.escape(begin) + '[0-9]{1,255}', key))
        cells = len(subject.guest.cells) if subject.guest else 0
        late = [(number, key) for at, (number, key) in enumerate(numbers)
                if at != number or at >= cells or key != f'{begin}{number}']
        if late:
            number, key = late[0]
            why = (f'the server has {strings.count(cells, "NUMA node")}'
                   if number >= cells else
                   'a lower number is missing, or the number begins with 0')
            yield values.warning(key, f'Nova does not look at it: {why}',
                                 f'{_LISTS}, and {_NODES}')


def used(subject: values.LintSubject) -> values.Findings:
    if not subject.servers:
        return
    now = dict(subject.flavor.extra_specs)
    other = [server for server in subject.servers
             if dict(server.flavor.extra_specs) != now]
    text = f'in use by {strings.count(len(subject.servers), "server")}'
    if other:
        text = f'{text}, booted when it was different: {len(other)}'
    yield values.warning(
        values.WHOLE, text, 'resize these servers to another flavor; a change '
        'of this one reaches new servers only')


def only_vfs(subject: values.LintSubject) -> values.Findings:
    cut_off = [server for server in subject.servers or ()
               if server.ports and
               movable.vfs_detached(server) == len(server.ports)]
    if cut_off:
        yield values.warning(
            values.WHOLE, f'{strings.count(len(cut_off), "server")} with VFs '
            'only: a live migration detaches them, and attaches others on the '
            'destination', 'add a port on the virtual switch, which the '
            'server bonds with a VF, or move them cold: --cold-for-vfs')


def devices(subject: values.LintSubject) -> int:
    value = subject.flavor.extra_specs.get('pci_passthrough:alias', '')
    numbers = [part.rpartition(':')[2] for part in value.split(',')]
    return sum(int(number) for number in numbers
               if number.strip().isdecimal() and len(number) < 20)
