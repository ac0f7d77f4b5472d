# SPDX-License-Identifier: Apache-2.0
"""Read the nova.conf of a compute node, of this host or another one.

oslo.config reads it, with the definitions of Nova's options, but apart from
the configuration of this process.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import glob
import os

from nova.conf import compute
from nova.conf import libvirt
from nova.conf import neutron
from nova.conf import pci
from nova.conf import workarounds
from nova import exception
from nova.virt import hardware
from oslo_config import cfg
from oslo_utils import strutils

from nfv_sched.base import cpu_spec
from nfv_sched.base import files
from nfv_sched.nova import flavors

# Errors whose message has the path of the file.
_NAMING_FILES = (
    cfg.ConfigFileParseError, cfg.ConfigFilesNotFoundError,
    cfg.ConfigFilesPermissionDeniedError, cfg.ConfigFileValueError)
#: Option -> the section in which Nova reads it.
_SECTIONS = {
    **dict.fromkeys(('vcpu_pin_set', 'reserved_host_cpus',
                     'reserved_host_memory_mb', 'reserved_huge_pages',
                     'cpu_allocation_ratio'), 'DEFAULT'),
    **dict.fromkeys(('cpu_shared_set', 'cpu_dedicated_set'), 'compute'),
    **dict.fromkeys(('cpu_power_management', 'cpu_power_management_strategy'),
                    'libvirt'), 'physnets': 'neutron', 'device_spec': 'pci'}


class OptionsError(Exception):
    """A nova.conf cannot be read."""


def read(paths: Sequence[str]) -> cfg.ConfigOpts:
    """Return the configuration of a compute node; may raise OptionsError.

    :param paths: those of ``--config-file`` and ``--config-dir``, in order
    """
    names = [name for path in paths for name in _files(path)]
    conf = cfg.ConfigOpts()
    # Nova's own functions for this register its OptGroup objects, which all
    # configurations of a process share.
    for group, options in (
            (None, compute.ALL_OPTS), ('compute', compute.compute_group_opts),
            ('neutron', neutron.ALL_OPTS), ('libvirt', libvirt.ALL_OPTS),
            ('workarounds', workarounds.ALL_OPTS), ('pci', pci.pci_opts)):
        conf.register_opts(options, group=group)
    # A source is a driver named in the file, which reads options elsewhere.
    conf.set_override('config_source', [])
    with naming(paths):
        conf([], project='nova', default_config_files=names,
             default_config_dirs=[])
        conf.clear_override('config_source')
        if conf.config_source:
            raise ValueError(
                'config_source is not followed; give the files themselves')
        neutron.register_dynamic_opts(conf)
        # Nova would fill the memory with all numbers up to the last one.
        for text in (conf.vcpu_pin_set, conf.compute.cpu_shared_set,
                     conf.compute.cpu_dedicated_set):
            if text and flavors.cpu_count(text) > cpu_spec.MOST_CPUS:
                raise ValueError(f'{text[:40]!r} has CPUs that no host has')
    return conf


def _files(path: str) -> list[str]:
    """Return a file, or those that Nova reads in a folder, in its order."""
    names = [path]
    if os.path.isdir(path):
        names = sorted(glob.glob(os.path.join(glob.escape(path), '*.conf')))
        if not names:
            raise OptionsError(f'{path}: has no *.conf')
    for name in names:
        if files.is_named_pipe(name):
            raise OptionsError(f'{name}: is a named pipe')
    return names


@contextlib.contextmanager
def naming(paths: Sequence[str]) -> Iterator[None]:
    """Make errors within this context OptionsError with the path."""
    try:
        yield
    except _NAMING_FILES as exc:
        raise OptionsError(str(exc)) from exc
    except (cfg.Error, exception.Invalid, ValueError, OSError,
            RecursionError) as exc:
        raise OptionsError(f'{", ".join(paths)}: {exc}') from exc


def misplaced(conf: cfg.ConfigOpts,
              ) -> Iterator[tuple[str, str, Sequence[str], str]]:
    """Yield (section, option, its values, section where Nova reads it)."""
    for section in conf.list_all_sections():
        for option, belongs in _SECTIONS.items():
            # Nova finds [Compute], but not [default].
            if belongs in (section, section.lower()):
                continue
            group = None if section == 'DEFAULT' else section
            conf.register_opt(cfg.MultiStrOpt(option), group=group)
            if texts := (conf if group is None else conf[group])[option]:
                yield section, option, texts, belongs


def cpus(text: str | None) -> tuple[int, ...]:
    return tuple(sorted(hardware.parse_cpu_spec(text))) if text else ()


def reserved_pages(entries: Sequence[Mapping[str, str]] | None,
                   ) -> dict[tuple[int, int], int]:
    """Return (NUMA node, KiB) -> number of reserved pages, as Nova does."""
    pages = {}
    for entry in entries or ():
        try:
            size = entry['size']
            kib = int(size) if size.isdigit() else (
                strutils.string_to_bytes(size, return_int=True) // 1024)
            pages[int(entry['node']), kib] = int(entry['count'])
        except (KeyError, OverflowError, TypeError, ValueError) as exc:
            raise ValueError(
                f'reserved_huge_pages = {dict(entry)} is malformed') from exc
    return pages
