# SPDX-License-Identifier: Apache-2.0
"""Make the checks that nova-compute makes of its options when it starts.

Nova's own code makes them, with a stand-in for libvirt and the machine.
"""

from collections.abc import Iterator, Mapping
import contextlib
import re
import typing as ty

from nova import exception
from nova.virt import hardware
from nova.virt.libvirt import config as libvirt_config
from nova.virt.libvirt.cpu import api
from nova.virt.libvirt import driver
from oslo_config import cfg

from nfv_sched.base import cpu_spec
from nfv_sched.base import strings

#: What Nova raises for options that it refuses, or cannot read.
_REFUSALS = (exception.NovaException, cfg.Error, ArithmeticError, LookupError,
             TypeError, ValueError)
_NO_CPU = -1
_CPU_LIST = re.compile(r'\[(\d+(?:, \d+)*)\]')


class _Core(api.Core):
    """A CPU of the machine, in place of its files in /sys."""

    def __init__(self, ident: int, host: '_Host') -> None:
        super().__init__(ident)
        if ident not in host.present:
            raise ValueError(
                f"Invalid '[compute] cpu_dedicated_set' config: there is no "
                f'CPU {ident}, which [libvirt] cpu_power_management would '
                'switch on')
        self._host = host

    @property
    def online(self) -> bool:
        return self.ident in self._host.online

    @online.setter
    def online(self, state: bool) -> None:
        pass

    @property
    def governor(self) -> str | None:
        return self._host.governors.get(self.ident)

    def set_high_governor(self) -> None:
        pass


class _API(api.API):

    def __init__(self, host: '_Host') -> None:
        self._host = host

    def core(self, i: int) -> _Core:
        return _Core(i, self._host)


class _Host:
    """The machine as the driver has it from libvirt."""

    def __init__(self, nodes: Mapping[int, frozenset[int]],
                 offline: frozenset[int],
                 governors: Mapping[int, str]) -> None:
        self.online = frozenset().union(*nodes.values())
        self.present = self.online | offline
        self.governors = governors
        self._capabilities = libvirt_config.LibvirtConfigCaps()
        self._capabilities.host = libvirt_config.LibvirtConfigCapsHost()
        topology = libvirt_config.LibvirtConfigCapsNUMATopology()
        topology.cells = [_cell(*each) for each in sorted(nodes.items())]
        self._capabilities.host.topology = topology

    def get_online_cpus(self) -> frozenset[int]:
        return self.online

    def get_available_cpus(self) -> frozenset[int]:
        return self.present

    def get_capabilities(self) -> libvirt_config.LibvirtConfigCaps:
        return self._capabilities


def _cell(node: int, cpus: frozenset[int]) -> ty.Any:
    cell = libvirt_config.LibvirtConfigCapsNUMACell()
    cell.id = node
    # One in each, so that the node is in one socket.
    for number in sorted(cpus) or [_NO_CPU]:
        cpu = libvirt_config.LibvirtConfigCapsNUMACPU()
        cpu.id, cpu.socket_id, cpu.siblings = number, 0, {number}
        cell.cpus.append(cpu)
    return cell


class _Driver(driver.LibvirtDriver):
    """The driver, without a connection to libvirt."""

    def __init__(self, host: _Host) -> None:
        self._host = host
        self.cpu_api = _API(host)
        self._reserved_hugepages: dict = {}

    def _has_numa_support(self) -> bool:
        return True


@contextlib.contextmanager
def _configured(conf: cfg.ConfigOpts) -> Iterator[None]:
    """Have Nova's code read a configuration within this context."""
    # NOTE: these modules read the configuration of the process, which is that
    # of a controller, not of the compute node.
    with contextlib.ExitStack() as stack:
        for module in (hardware, api, driver):
            stack.callback(setattr, module, 'CONF', module.CONF)
            module.CONF = conf
        yield


def errors(conf: cfg.ConfigOpts, nodes: Mapping[int, frozenset[int]],
           offline: Mapping[int, int | None], governors: Mapping[int, str],
           ) -> Iterator[tuple[bool, str]]:
    """Yield what nova-compute finds wrong, each reason once, in Nova's words.

    With each, whether nova-compute starts all the same, without its host.

    :param nodes: NUMA node of the machine -> its online CPUs
    :param offline: CPU that is there, but not online -> its NUMA node, or
        None; then Nova may know nodes of which no CPU is online
    :param governors: CPU -> its frequency governor, as far as known
    """
    # Whether the models of its options suit the CPU, only libvirt knows.
    conf.set_override('skip_cpu_compare_at_startup', True, group='workarounds')
    if conf.libvirt.cpu_power_management and None in offline.values():
        nodes = {**dict.fromkeys(_named_nodes(conf), frozenset()), **nodes}
    host_driver = _Driver(_Host(nodes, frozenset(offline), governors))
    seen = set()
    # NOTE: the first is in the driver's __init__(), the others up to
    # _check_cpu_compatibility() in init_host(): ComputeManager fails with
    # them. What the resource tracker needs afterwards is logged as an error
    # ("Error updating resources for node"), again and again.
    for starts, check in (
        (False, hardware.numa_get_reserved_huge_pages),
        (False, host_driver._check_cpu_set_configuration),
        (False, host_driver._init_host_topology),
        (False, host_driver.cpu_api.validate_all_dedicated_cpus),
        (False, host_driver._check_cpu_compatibility),
        (True, host_driver._get_vcpu_available),
        (True, host_driver._get_pcpu_available),
        (True, host_driver._get_host_numa_topology),
    ):
        try:
            with _configured(conf):
                check()
        except _REFUSALS as exc:
            reason = strings.one_line(_CPU_LIST.sub(
                lambda match: cpu_spec.to_text(map(int, match[1].split(', '))),
                str(exc)))
            if reason not in seen:
                seen.add(reason)
                yield starts, reason


def _named_nodes(conf: cfg.ConfigOpts) -> frozenset[int]:
    try:
        return frozenset().union(conf.neutron_tunnel.numa_nodes, *(
            conf[f'neutron_physnet_{name}'].numa_nodes
            for name in conf.neutron.physnets))
    except cfg.Error:
        return frozenset()
