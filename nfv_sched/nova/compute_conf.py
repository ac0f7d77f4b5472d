# SPDX-License-Identifier: Apache-2.0
"""Read the nova.conf of a compute node, of this host or another one.

oslo.config reads it, with the definitions of Nova's options, but apart from
the configuration of this process.
"""

from collections.abc import Mapping
from collections.abc import Sequence

from nova.conf import compute
from nova.conf import neutron
from nova import exception
from nova.virt import hardware
from oslo_config import cfg
from oslo_utils import strutils

from nfv_sched import cpu_spec
from nfv_sched import files
from nfv_sched.nova import compute_settings
from nfv_sched.nova import flavors

# Errors whose message has the path of the file.
_NAMING_FILES = (
    cfg.ConfigFileParseError, cfg.ConfigFilesNotFoundError,
    cfg.ConfigFilesPermissionDeniedError, cfg.ConfigFileValueError)


class OptionsError(Exception):
    """A nova.conf cannot be read, or Nova would refuse it."""


def read(paths: Sequence[str]) -> compute_settings.Settings:
    """Return the settings in the configuration files of a compute node.

    :param paths: the files, as nova-compute gets them by ``--config-file``
    :raises OptionsError: if nova-compute would not start with them
    """
    for path in paths:
        if files.is_named_pipe(path):
            raise OptionsError(f'{path}: is a named pipe')
    conf = cfg.ConfigOpts()
    # Nova's own functions for this register its OptGroup objects, which all
    # configurations of a process share.
    conf.register_opts(compute.ALL_OPTS)
    conf.register_opts(compute.compute_group_opts, group='compute')
    conf.register_opts(neutron.ALL_OPTS, group='neutron')
    # A source is a driver named in the file, which reads options elsewhere.
    conf.set_override('config_source', [])
    try:
        conf([], project='nova', default_config_files=list(paths),
             default_config_dirs=[])
        conf.clear_override('config_source')
        if conf.config_source:
            raise ValueError(
                'config_source is not followed; give the files themselves')
        neutron.register_dynamic_opts(conf)
        return compute_settings.Settings(
            shared=_cpus(conf.compute.cpu_shared_set),
            dedicated=_cpus(conf.compute.cpu_dedicated_set),
            reserved_memory=conf.reserved_host_memory_mb,
            reserved_pages=_pages(conf.reserved_huge_pages or ()),
            cpu_ratio=conf.cpu_allocation_ratio,
            pin_set=conf.vcpu_pin_set or '',
            physnets={name: frozenset(
                conf[f'neutron_physnet_{name}'].numa_nodes)
                for name in conf.neutron.physnets})
    except _NAMING_FILES as exc:
        raise OptionsError(str(exc)) from exc
    except (cfg.Error, exception.Invalid, ValueError, OSError) as exc:
        raise OptionsError(f'{", ".join(paths)}: {exc}') from exc


def _cpus(text: str | None) -> frozenset[int]:
    """Return the CPUs of a set, as Nova reads it."""
    # Nova would fill the memory with all numbers up to the last one.
    if text and flavors.cpu_count(text) > cpu_spec.MOST_CPUS:
        raise ValueError(f'{text[:40]!r} has CPUs that no host has')
    return frozenset(hardware.parse_cpu_spec(text)) if text else frozenset()


def _pages(entries: Sequence[Mapping[str, str]]
           ) -> dict[tuple[int, int], int]:
    """Return (NUMA node, KiB) -> number of reserved pages, as Nova reads it.

    :raises ValueError: if an entry is malformed
    """
    reserved_pages = {}
    for entry in entries:
        try:
            size = entry['size']
            kib = int(size) if size.isdigit() else (
                strutils.string_to_bytes(size, return_int=True) // 1024)
            reserved_pages[int(entry['node']), kib] = int(entry['count'])
        except (KeyError, OverflowError, TypeError, ValueError) as exc:
            raise ValueError(
                f'reserved_huge_pages = {dict(entry)} is malformed') from exc
    return reserved_pages
