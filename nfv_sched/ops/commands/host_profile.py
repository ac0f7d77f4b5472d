# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched host profile``."""

import argparse
import dataclasses
import re

from nfv_sched.base import cpu_spec
from nfv_sched.base import strings
from nfv_sched.ops.answers.machine import facts
from nfv_sched.ops.answers.machine import read
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.answers.profile import check
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import configuration
from nfv_sched.ops.answers.profile import derivation
from nfv_sched.ops.answers.profile import document
from nfv_sched.ops.answers.profile import tables
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cli import formats
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import planning

#: Format that is a configuration file -> function that writes it.
_CONFIGURATION = {
    'nova.conf': configuration.nova_conf, 'kernel': configuration.kernel,
    'tuned': configuration.tuned, 'ovs': configuration.ovs,
    'ansible': configuration.ansible}

# Names that nova.conf allows in a list and in the name of a section.
_NETWORK = re.compile(r'''[^\s,=$'"\[\]]+''')
_MOST_MTU = 65536
_EPSILON = 1e-9
_MOST_CORES = 1024
_MOST_VFS = 65535  # 16 bits in the capability of PCI
_MOST_OSDS = 10000

_BACKGROUND = f"""\
Whole cores are assigned, those with the lowest CPU numbers first: to the
platform, the virtual switch, Ceph OSDs, shared vCPUs; pinned servers get the
rest. Layouts:

- hcg: the platform has one core of node 0, 6 GiB there and 2 GiB on each NUMA
  node, as in HPE Helion Carrier Grade
- every-node: one core of each NUMA node and 4 GiB, as with TripleO
- floating: servers share all CPUs with the platform, as in hyper-converged
  clouds; a formula says how much memory is kept

By default this machine is read, from /sys. --facts names files about another
one; the first that has a fact counts:

- {facts.LSCPU}, or -a -p for -J -e:
  CPUs, but neither memory (add --node-memory) nor NICs
- lscpu -J: flags and vendor, and CPUs only where a core has one thread
- virsh capabilities: all but NICs
- Ironic's inspection data, with the collector numa-topology: all but sockets
- facts of Ansible (setup): all memory and names of NICs
- parameters of a TripleO role: what CPUs are for, beside one of the others

"""

_EPILOG = """\
With -f nova.conf, kernel, tuned, ovs or ansible: the configuration for it.

examples:
  nfv-sched host profile --facts ironic.json --vswitch-nic physnet0=ens1f0
  nfv-sched host profile --facts cpus.json --node-memory 128,128 -f nova.conf
  nfv-sched host profile --shared --check /etc/nova/nova.conf

exit code: 0; 1 if something could not be read; 2 if the command line is wrong
or the machine cannot be set up so; 3 if --check finds differences, or what
keeps nova-compute from starting.
"""


def _whole(text: str, least: int, most: int, description: str) -> int:
    if not re.fullmatch('[0-9]{1,9}', text, re.ASCII):
        raise argparse.ArgumentTypeError(f'{text!r} is not {description}')
    return int(arguments.amount(text, least, most, description))


def _switch_cores(text: str) -> int | dict[int, int]:
    """Parse cores for the switch: ``2``, or ``0:2,1:2``."""
    if ':' not in text:
        return _whole(text, 0, _MOST_CORES, 'a number of cores')
    cores_by_node: dict[int, int] = {}
    for part in text.split(','):
        node, colon, cores = part.partition(':')
        if not colon:
            raise argparse.ArgumentTypeError(
                f'{part!r} is not NODE:CORES, such as 0:2')
        number = _whole(node, 0, cpu_spec.MOST_CPUS, 'a NUMA node')
        if number in cores_by_node:
            raise argparse.ArgumentTypeError(
                f'NUMA node {number} is there twice')
        cores_by_node[number] = _whole(
            cores, 0, _MOST_CORES, 'a number of cores')
    return cores_by_node


def _is_option(name: str) -> bool:
    """Return True if a name can stand in nova.conf and in a terminal."""
    return strings.line(name) == name and _NETWORK.fullmatch(name) is not None


def _nic(text: str) -> choices.ChosenNIC:
    """Parse a NIC: ``ens1f0``, or ``physnet0=ens1f0``."""
    physnet, equals, name = text.rpartition('=')
    if not name or equals and not _is_option(physnet):
        raise argparse.ArgumentTypeError(f'{text!r} is not NIC or PHYSNET=NIC')
    return choices.ChosenNIC(name=name, physnet=physnet)


def _sriov_nic(text: str) -> choices.ChosenNIC:
    """Parse a NIC with VFs: ``physnet1=ens6f0:8``, ``0000:af:00.0:8``."""
    name, _colon, vfs = text.rpartition(':')
    nic = _nic(name if vfs.isdigit() else text)
    if not _is_option(nic.name):
        raise argparse.ArgumentTypeError(f'{nic.name!r} is not a NIC')
    return dataclasses.replace(nic, vfs=_whole(
        vfs, 1, _MOST_VFS, 'a number of VFs') if vfs.isdigit() else None)


def _pages(text: str) -> tuple[tuple[int, float], ...]:
    """Parse page sizes: ``1G``, ``2M``, ``1G:80%``, ``1G:50%,2M:50%``."""
    fractions: dict[int, float] = {}
    for part in text.split(','):
        name, colon, percent = part.partition(':')
        if (size := choices.PAGE_SIZES.get(name.upper())) is None:
            raise argparse.ArgumentTypeError(
                f'{name!r} is not one of {", ".join(choices.PAGE_SIZES)}')
        if size in fractions:
            raise argparse.ArgumentTypeError(f'{name} is there twice')
        fractions[size] = arguments.amount(
            percent.removesuffix('%'), 0, 100,
            'a percentage') / 100 if colon else 1.0
    if sum(fractions.values()) > 1 + _EPSILON:
        raise argparse.ArgumentTypeError(f'{text!r} is more than 100%')
    return tuple(fractions.items())


def _mtus(text: str) -> frozenset[int]:
    return frozenset(_whole(part, 68, _MOST_MTU, 'an MTU')
                     for part in text.split(','))


def _osds(text: str) -> dict[str, int]:
    """Parse OSDs: ``10``, ``10:nvme``, ``4:ssd,6:hdd``."""
    counts: dict[str, int] = {}
    for part in text.split(','):
        count, colon, kind = part.partition(':')
        kind = kind if colon else choices.HDD
        if kind not in choices.OSD_TYPES:
            raise argparse.ArgumentTypeError(
                f'{kind!r} is not one of {", ".join(choices.OSD_TYPES)}')
        if kind in counts:
            raise argparse.ArgumentTypeError(f'{kind} is there twice')
        counts[kind] = _whole(count, 0, _MOST_OSDS, 'a number of OSDs')
    return counts


def _memory(text: str) -> tuple[int, ...]:
    return tuple(int(1024 * arguments.amount(
        part, 0, facts.MOST_MEMORY // 1024, 'a memory size in GiB'))
        for part in text.split(','))


def _label(text: str) -> str:
    if not _is_option(text):
        raise argparse.ArgumentTypeError(f'{text!r} is not a label')
    return text


class ProfileHost(planning.Report):
    """Propose the settings of a new host: CPUs, memory, pages, labels."""

    background = _BACKGROUND
    epilog = _EPILOG
    schemas = {'host-profile': document.Profile,
               'host-profile-check': check.OptionDifferences}
    formats = {**formats.LIST, **dict.fromkeys(
        _CONFIGURATION, formats.Commands)}

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        _add_machine(parser.add_argument_group('the machine'))
        _add_host(parser.add_argument_group('the host'))
        _add_guests(parser.add_argument_group(base.LOAD_GROUP))

    def report(self, parsed_args: argparse.Namespace) -> planning.Output:
        chosen = _choices(parsed_args)
        machine = read.machine(
            parsed_args.facts, parsed_args.sys, parsed_args.node_memory)
        if parsed_args.check:
            return self._compare(parsed_args, chosen, machine)
        host_profile = derivation.derive(machine, chosen)
        text = ''
        if parsed_args.formatter in _CONFIGURATION:
            # These have no place for them that every reader keeps.
            for warning in host_profile.warnings:
                self.app.stderr.write(f'warning: {warning}\n')
            text = _CONFIGURATION[parsed_args.formatter](host_profile)
        return planning.Output(
            text=tables.text(host_profile), columns=tables.COLUMNS,
            rows=tables.rows(host_profile),
            commands=text.removesuffix('\n').split('\n') if text else (),
            document=documents.Document(host_profile))

    def _compare(self, parsed_args: argparse.Namespace,
                 chosen: choices.Choices,
                 machine: values.Machine) -> planning.Output:
        formatter = parsed_args.formatter
        if formatter in _CONFIGURATION:
            raise errors.UsageError(
                f'--check has no format {formatter}; use table, json, yaml, '
                'csv or value')
        from nfv_sched.nova import compute_conf
        try:
            compared = check.compare(parsed_args.check, chosen, machine)
        except compute_conf.OptionsError as exc:
            raise errors.CloudUnreadError(str(exc)) from exc
        self.has_findings = bool(compared.differences or compared.start_errors)
        if not self.has_findings and not compared.compares:
            raise errors.CloudUnreadError(tables.powered_down(compared))
        if formatter not in documents.FORMATS and (
                formatter != base.TABLE or parsed_args.columns):
            # The columns have no place for them.
            for sentence in tables.start_errors(compared):
                self.app.stderr.write(f'{sentence}\n')
        return planning.Output(
            text=tables.check_text(compared), columns=tables.CHECK_COLUMNS,
            rows=tables.check_rows(compared),
            document=documents.Document(compared, ('differences',)))


def _choices(parsed_args: argparse.Namespace) -> choices.Choices:
    chosen = {field.name: getattr(parsed_args, field.name)
              for field in dataclasses.fields(choices.Choices)}
    for name, usual in zip(('guest_gb', 'utilisation'), choices.WORKLOADS.get(
            parsed_args.workload, ())):
        if chosen[name] is None:
            chosen[name] = usual
    if chosen['utilisation'] is not None and chosen['guest_gb'] is None:
        raise errors.UsageError('--utilisation needs --guest-gb')
    if chosen['utilisation'] is None:
        del chosen['utilisation']
    chosen['mtus'] = frozenset().union(*chosen['mtus'])
    return choices.Choices(**chosen)


def _add_machine(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        '--facts', action='append', default=[], metavar='FILE',
        help='of lscpu, libvirt, Ironic or Ansible; can be repeated (default: '
             'this machine is read)')
    group.add_argument(
        '--sys', metavar='DIR',
        help='where /sys of the machine is, or a copy of it; after --facts')
    group.add_argument(
        '--node-memory', type=_memory, metavar='GIB[,GIB...]',
        help='memory of each NUMA node in GiB, if the facts lack it')
    group.add_argument(
        '--check', action='append', default=[], metavar='FILE|DIR',
        help='compare the nova.conf of a running host, or a folder of such '
             'files; can be repeated if nova-compute has several')


def _add_host(group: argparse._ArgumentGroup) -> None:
    defaults = choices.Choices()
    group.add_argument(
        '--layout', choices=choices.LAYOUTS, default=defaults.layout,
        help=f'CPUs and memory of the platform (default: {defaults.layout})')
    group.add_argument(
        '--vswitch-cores', type=_switch_cores, metavar='N|NODE:N[,...]',
        dest='switch_cores',
        help='physical cores for the virtual switch: on the NUMA nodes of its '
             'NICs, node 0 if none is named, or on these (default: 2; with '
             'layout floating: 0)')
    group.add_argument(
        '--vswitch-nic', type=_nic, action='append', default=[],
        metavar='[PHYSNET=]NIC', dest='switch_nics',
        help='a NIC of the virtual switch, by name or PCI address, and the '
             'physical network that it serves; can be repeated')
    group.add_argument(
        '--sriov-nic', type=_sriov_nic, action='append', default=[],
        metavar='[PHYSNET=]NIC[:VFS]', dest='sriov_nics',
        help='a NIC whose VFs servers get, likewise, and the number of VFs to '
             'create; can be repeated')
    group.add_argument(
        '--mtu', type=_mtus, action='append', default=[],
        metavar='MTU[,MTU...]', dest='mtus',
        help='MTUs of the networks of the switch, for its memory (default: '
             '1 GiB on each node)')
    group.add_argument(
        '--shared', action='store_true',
        help='one core of each NUMA node for shared vCPUs')
    group.add_argument(
        '--pages', type=_pages, metavar='SIZE[:PERCENT][,...]',
        help='huge pages for servers: 1G, 2M, another size that the machine '
             'has, 4K for none, and how much of the memory that is left '
             '(default: 1G, or the next smaller; floating: 4K)')
    group.add_argument(
        '--network-node', action='store_true',
        help='DHCP servers or routers run on the host: 4000 MiB more are kept')
    group.add_argument(
        '--vswitch-label', type=_label, default=defaults.vswitch_label,
        metavar='NAME',
        help='as in [nfv_sched] vswitch_label of nova-scheduler (default: '
             f'{defaults.vswitch_label})')
    group.add_argument(
        '--node-label-prefix', type=_label,
        default=defaults.node_label_prefix, metavar='PREFIX',
        help='as in [nfv_sched] node_label_prefix of nova-scheduler '
             f'(default: {defaults.node_label_prefix})')


def _add_guests(group: argparse._ArgumentGroup) -> None:
    defaults = choices.Choices()
    group.add_argument(
        '--osds', type=_osds, default={}, metavar='N[:TYPE][,...]',
        help='Ceph OSDs on disks of type hdd, ssd or nvme (default of the '
             'type: hdd)')
    group.add_argument(
        '--osds-per-device', default=defaults.osds_per_device, metavar='N',
        type=lambda text: _whole(text, 1, 64, 'a number of OSDs'),
        help=f'OSDs on each NVMe device (default: {defaults.osds_per_device})')
    group.add_argument(
        '--gb-per-osd', default=defaults.gb_per_osd, metavar='GB',
        type=lambda text: arguments.amount(
            text, 0, 1024, 'a memory size in GB'),
        help=f'memory of an OSD (default: {defaults.gb_per_osd:g})')
    group.add_argument(
        '--mb-per-gb', type=int, choices=(1000, 1024),
        default=defaults.mb_per_gb,
        help=f'MB in a GB (default: {defaults.mb_per_gb})')
    group.add_argument(
        '--ceph-node', metavar='NODE',
        type=lambda text: _whole(text, 0, cpu_spec.MOST_CPUS, 'a NUMA node'),
        help='NUMA node of the OSDs (default: all)')
    group.add_argument(
        '--guest-gb', metavar='GB',
        type=lambda text: arguments.amount(
            text, 0.01, 65536, 'a memory size in GB'),
        help='memory of an average server')
    group.add_argument(
        '--utilisation', metavar='PART',
        type=lambda text: arguments.amount(text, 0.001, 1, 'a utilisation'),
        help='of the CPUs of an average server, up to 1 (default: 1)')
    group.add_argument(
        '--workload', choices=tuple(choices.WORKLOADS),
        help='--guest-gb and --utilisation of a usual workload: ' + '; '.join(
            f'{name} {gb:g} GB, {part:g}'
            for name, (gb, part) in choices.WORKLOADS.items()))
