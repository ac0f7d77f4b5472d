# SPDX-License-Identifier: Apache-2.0
"""Set Nova's configuration during a simulation.

Defaults are set first, then the configuration files of the command line, then
the ``options`` of the cloud file.  All values are restored afterwards, even
after an error.  Nova has one configuration per process, so only one cloud at a
time can be simulated; opening another raises :class:`CloudOpenError`.

A file is data: only options in :mod:`nfv_sched.ops.cloud.options` are set
from it.  Nova imports whatever ``available_filters`` and ``weight_classes``
name, and calls it if it is a function; therefore names in a file are compared
with those of known classes, and never imported.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import random
import threading
import typing as ty

from nova.scheduler import filters as nova_filters
from nova.scheduler import weights as nova_weights
from oslo_config import cfg

from nfv_sched.base import conf
from nfv_sched.base import extensions
from nfv_sched.base import extra_specs
from nfv_sched.fit import rules
from nfv_sched.ops.cloud import options as cloud_options
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import nova_internals

CONF = nova_internals.CONF

# Filters of limits must be last: filters that follow may undo their work; see
# checks.scheduler.
_LAST = ('VSwitchPortLimitFilter', 'SecurityRuleLimitFilter')
_PCI_FILTER = 'PciPassthroughFilter'
_DOWN_TIME = ('DEFAULT', 'service_down_time')
#: The user of a command chooses it, not the cloud.
_REASONS = ('nfv_sched', 'expose_reasons')
#: Attributes of ``ConfigOpts`` with the values read from files.
_OF_FILES = ('_namespace', '_mutable_ns', '_sources')
#: Held while a cloud is simulated in this process.
_open = threading.Lock()


class CloudOpenError(RuntimeError):
    """Attempt to simulate a second cloud in this process."""


def our_filters() -> list[str]:
    """Return nfv-sched's installed filters, in the order to enable them."""
    names = {cls.__name__ for cls in extensions.classes('nfv_sched.filters')}
    order = dict.fromkeys((
        *rules.filters(), *sorted(names.difference(_LAST)), *_LAST))
    return [name for name in order if name in names]


def _set_defaults(stack: contextlib.ExitStack) -> None:
    """Add nfv-sched's filters and weighers, and the PCI filter, to defaults.

    The PCI filter is not enabled by default in Nova, but needed as soon as a
    host has PCI devices.
    """
    ours = our_filters()
    nova_filters = [name for name in CONF.filter_scheduler.enabled_filters
                    if name not in ours and name != _PCI_FILTER]
    for group, name, value in (
            *(('filter_scheduler', option, list(names))
              for option, names in cloud_options.STANDARD_CLASSES.items()),
            ('filter_scheduler', 'enabled_filters',
             [*nova_filters, _PCI_FILTER, *ours]),
            (*_REASONS, 'hosts')):
        _restore(stack, group, name)
        CONF.set_default(name, value, group=group)


@contextlib.contextmanager
def _use_files(config_files: Sequence[str]) -> Iterator[None]:
    """Replace the files of Nova's configuration within this context."""
    files = cfg.ConfigOpts()
    try:
        files([], project='nova', prog='nfv-sched',
              default_config_files=list(config_files), default_config_dirs=[])
    except cfg.Error as e:
        raise problems.InputError([' '.join(str(e).split())])
    # NOTE: Nova's code reads one global object.  oslo.config can forget the
    # files that it has read, but not restore those that it had read before.
    before = {name: getattr(CONF, name) for name in _OF_FILES}
    try:
        for name in _OF_FILES:
            setattr(CONF, name, getattr(files, name))
        _forget_values()
        yield
    finally:
        for name, value in before.items():
            setattr(CONF, name, value)
        _forget_values()


@contextlib.contextmanager
def defaults(config_files: Sequence[str] = ()) -> Iterator[scenarios.Defaults]:
    """Enable nfv-sched in Nova's configuration within this context.

    :param config_files: files such as nova.conf, which override the defaults
    :raises CloudOpenError: if a cloud is being simulated in this process
    """
    # An error, not a wait: the one that waits may be the thread that holds it.
    if not _open.acquire(blocking=False):
        raise CloudOpenError(
            'a cloud is being simulated in this process, which has one '
            'configuration of Nova; close it before opening another')
    with contextlib.ExitStack() as stack:
        stack.callback(_open.release)
        conf.register_opts(CONF)
        if config_files:
            stack.enter_context(_use_files(config_files))
        _set_defaults(stack)
        yield scenarios.Defaults(
            switch_label=CONF.nfv_sched.vswitch_label,
            node_prefix=CONF.nfv_sched.node_label_prefix,
            cpu_ratio=CONF.initial_cpu_allocation_ratio,
            ram_ratio=CONF.initial_ram_allocation_ratio,
            disk_ratio=CONF.initial_disk_allocation_ratio,
            zone=CONF.default_availability_zone)


def _classes(option: str) -> frozenset[str]:
    """Return the names of the classes that a file may use in an option."""
    if option == 'available_filters':
        classes = nova_filters.all_filters()
        classes += extensions.classes('nfv_sched.filters')
    else:
        classes = nova_weights.all_weighers()
        classes += extensions.classes('nfv_sched.weighers')
    return frozenset((
        *cloud_options.STANDARD_CLASSES[option],
        *(f'{cls.__module__}.{cls.__qualname__}' for cls in classes),
        *CONF.filter_scheduler[option]))


def refused_classes(options: Mapping[str, Mapping[str, ty.Any]],
                    ) -> list[snapshot.Missing]:
    """Return messages on classes of a snapshot that are not loaded here."""
    refused = []
    for option in cloud_options.STANDARD_CLASSES:
        names = cloud_options.class_names(options, option)
        allowed = _classes(option) if names else frozenset()
        refused += [
            snapshot.Missing(
                kind=snapshot.MissingKind.CLASS,
                text=f'[filter_scheduler] {option}: {_not_taken(name)}')
            for name in dict.fromkeys(names) if name not in allowed]
    return refused


def _not_taken(name: str) -> str:
    return (f'{extra_specs.shown(name, 100)} is not a class of Nova or '
            'nfv-sched here, and no --config-file names it')


def _set_option(stack: contextlib.ExitStack, group: str, name: str,
                value: ty.Any, line: int) -> None:
    """Set an option to the value in a file, without classes refused there.

    :param line: line of the option in a cloud file; 0 for a snapshot
    :raises ValueError: if a cloud file names such a class
    """
    is_class = (group == 'filter_scheduler'
                and name in cloud_options.STANDARD_CLASSES)
    allowed = _classes(name) if is_class else frozenset()
    _restore(stack, group, name)
    CONF.set_override(name, _literal(value), group=_group(group))
    if not is_class:
        return
    names = _value(group, name)
    if refused := [text for text in names if text not in allowed]:
        CONF.set_override(name, _literal([
            text for text in names if text in allowed]), group=_group(group))
        if line:
            raise ValueError(_not_taken(refused[0]))


def _restore(stack: contextlib.ExitStack, group: str, name: str) -> None:
    """Restore the present value of an option when the stack is unwound."""
    # NOTE: oslo.config does not tell whether a value of an option is from
    # set_override() or set_default(), and get_location() is wrong once such
    # a value was cleared.
    info = CONF._get_opt_info(name, _group(group))
    before = dict(info)

    def restore() -> None:
        info.clear()
        info.update(before)
        _forget_values()

    stack.callback(restore)


def _forget_values() -> None:
    """Clear the cache of oslo.config; any change of options does that."""
    CONF.unregister_opts(())


def _literal(value: ty.Any) -> ty.Any:
    """Escape ``$``, for which oslo.config would insert other options."""
    if isinstance(value, str):
        return value.replace('$', r'\$')
    if isinstance(value, (list, tuple)):
        return [_literal(each) for each in value]
    if isinstance(value, Mapping):
        return {_literal(key): _literal(each) for key, each in value.items()}
    return value


def _group(name: str) -> str | None:
    return None if name == 'DEFAULT' else name


def _value(group: str, name: str) -> ty.Any:
    return (CONF if group == 'DEFAULT' else CONF[group])[name]


@contextlib.contextmanager
def overrides(scenario: scenarios.Scenario, reasons: str | None = None,
              seed: int = 0) -> Iterator[None]:
    """Set the options of a cloud and of the command line in this context.

    :raises InputError: if an option does not exist or has a bad value.  An
        unknown one without a line, of a snapshot, is ignored
    """
    lines = scenario.lines
    settings = {
        (group, name): value
        for group, options in scenario.cloud.options.items()
        for name, value in options.items()
        if (group, name) != _REASONS or _REASONS in lines}
    if reasons is not None:
        settings[_REASONS] = reasons
    # Seconds.  Only the simulator takes services down, however long a
    # simulation takes.
    settings[_DOWN_TIME] = 10 ** 9
    with contextlib.ExitStack() as stack:
        # Nova chooses among equal hosts with the random module of the process.
        stack.callback(random.setstate, random.getstate())
        for (group, name), value in settings.items():
            line = lines.get((group, name), 0)
            try:
                before = _value(group, name)
                if (group, name) not in (_REASONS, _DOWN_TIME) and (
                        not cloud_options.may_be_set(group, name)):
                    if not line:
                        continue
                    raise ValueError('a file may not set this option; it may '
                                     'be set by a --config-file')
                if before is not None and (value is None or value == [None]):
                    if not line:
                        continue
                    raise ValueError('must have a value')
                _set_option(stack, group, name, value, line)
            except (cfg.Error, ValueError, TypeError, AttributeError,
                    OverflowError, RecursionError) as e:
                if not line and isinstance(
                        e, (cfg.NoSuchOptError, cfg.NoSuchGroupError)):
                    continue
                place = f'{scenario.path}:{line}' if line else scenario.path
                raise problems.InputError([
                    f'{place}: options.{group}.{name}: '
                    f'{" ".join(str(e).split())}'])
        random.seed(seed)
        stack.enter_context(nova_internals.offline(scenario.cloud.aggregates))
        yield
