# SPDX-License-Identifier: Apache-2.0
"""Give filters and weighers access to Nova beyond its stable interfaces.

Out-of-tree filters may rely on ``nova.scheduler.filters``,
``nova.scheduler.weights``, ``nova.conf``, ``nova.objects`` and
``nova.exception``.  Everything else of Nova is used in this package only, so
that a change in Nova is dealt with in one place.
"""

from collections.abc import Callable, Iterable
import functools
import threading
import typing as ty

import nova.conf
from nova import exception
from nova import objects
from oslo_log import log as logging

from nfv_sched.base import conf
from nfv_sched.nova import features

LOG = logging.getLogger(__name__)

_LISTENERS = '_nfv_sched_listeners'
_FOLLOWED = '_nfv_sched_followed'
_LOOKED_AT = 100  # latest servers of each cell that are read
_CELL_SECONDS = 2  # seconds that a request waits for the database of a cell

_THREAD = threading.local()

#: Nova's options, with those of nfv-sched.
CONF = nova.conf.CONF
conf.register_opts(CONF)


def request_is_rebuild(spec_obj) -> bool:
    from nova.scheduler import utils  # imports much; not wanted in nova-api
    return utils.request_is_rebuild(spec_obj)


def weight_multiplier(host_state, name: str, default: float) -> float:
    """Return a weigher's multiplier: the lowest of a host's aggregates.

    :param default: value of the option, used if no aggregate sets the key, or
        if the aggregates cannot be read
    """
    from nova.scheduler import utils
    try:
        if not host_state.aggregates:
            return default
        return utils.get_weight_multiplier(host_state, name, default)
    except Exception:
        LOG.exception('The aggregates of host %s cannot be read',
                      getattr(host_state, 'host', host_state))
        return default


def normalized_weights(raw: list[float], minval: float | None,
                       maxval: float | None) -> list[float]:
    from nova import weights
    return list(weights.normalize(raw, minval, maxval))


class ConsumeListener:
    """A listener for servers that Nova places on a host; see when_placed."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict) -> 'ConsumeListener':
        return self  # of a deep copy of a HostState, too

    def before_placed(self, host_state) -> None:
        """Handle a server that is about to be counted on the HostState."""

    def after_placed(self, host_state, spec_obj) -> None:
        """Handle a server that has been counted; ``spec_obj`` has its UUID."""


def when_placed(host_state, listener: ConsumeListener) -> None:
    """Register a listener to be called when Nova places a server on a host.

    That is when Nova calls ``HostState.consume_from_request``, right after the
    claim in Placement.  Registering the same listener again changes nothing.
    Listeners are called in the order in which they were registered; copies of
    the HostState that other filters make have them, too.
    """
    # Nova's class is wrapped already, but not one of another host manager.
    wrap(type(host_state), 'consume_from_request', place)
    listeners = host_state.__dict__.get(_LISTENERS, ())
    if listener not in listeners:
        # Of a copy they are its own from now on.
        host_state.__dict__[_LISTENERS] = (*listeners, listener)


def place(method: Callable, host_state, spec_obj) -> None:
    """Call ``HostState.consume_from_request``, and tell the listeners."""
    if getattr(_THREAD, 'placed_on', None) is host_state:
        # The method calls that of its base; both are wrapped, and tell once.
        method(host_state, spec_obj)
        return
    listeners = host_state.__dict__.get(_LISTENERS, ())
    for listener in listeners:
        _run_hook(listener.before_placed, host_state)
    _THREAD.placed_on = host_state
    try:
        method(host_state, spec_obj)
    finally:
        _THREAD.placed_on = None
    for listener in listeners:
        _run_hook(listener.after_placed, host_state, spec_obj)


def wrap(owner, name: str, wrapper: Callable) -> None:
    """Have a method of Nova call a wrapper, with the method first.

    Nothing happens if it is such a wrapper already, or wraps one.
    """
    method = wrapped = getattr(owner, name)
    while wrapped is not None:
        if getattr(wrapped, _FOLLOWED, False):
            return
        wrapped = getattr(wrapped, '__wrapped__', None)

    @functools.wraps(method)
    def call(*args, **kwargs):
        return wrapper(method, *args, **kwargs)

    setattr(call, _FOLLOWED, True)
    setattr(owner, name, call)


def _run_hook(hook: Callable, host_state, *args) -> None:
    try:
        hook(host_state, *args)
    except Exception:
        LOG.exception('What was placed on host %s cannot be noted',
                      getattr(host_state, 'host', '-'))


def extra_spec_validator_class():
    from nova.api.validation.extra_specs import base
    return base.ExtraSpecValidator


def known_extra_specs() -> set[str]:
    from nova.api.validation.extra_specs import validators
    return set(validators.VALIDATORS)


def enabled_filters() -> list[str]:
    return CONF.filter_scheduler.enabled_filters


def packs_numa_cells() -> bool:
    # The option is one of nova-compute. The scheduler predicts the claim by
    # its own nova.conf, which must have the same value.
    return CONF.compute.packing_host_numa_cells_allocation_strategy


def claims_sort_by_devices() -> bool:
    """Return whether claims sort by PCI devices for servers without any."""
    # The compute nodes are assumed to run the release of this service.
    # NOTE: Before commit 76d06e115b (bug 2144660, Nova 34) a claim sorted host
    # cells by free PCI devices only for servers that request devices, while
    # the scheduler's filter has always done so for all.
    return features.release() >= 34


def pinned_guests_need_cell_memory() -> bool:
    """Return whether pinned servers need free memory of a NUMA cell itself."""
    # Else free pages, of the smallest size if they request none.
    # NOTE: Before commit f14c16af82 (bug 1811886, Nova 30.0.0) the memory that
    # is left of a cell is compared, that of all page sizes, also for servers
    # that request huge pages.
    return features.release() < 30


def live_migration_carries_limits() -> bool:
    # nova-conductor is assumed to run the Nova of this service.
    # NOTE: Before commit f4709ec59f (bug 2153425, Nova 34.0.0, on no stable
    # branch) the conductor asked the destination for the claim before it had
    # read the limits of the scheduler's selection, and sent None.
    return features.release() >= 34


def pci_aliases() -> dict[str, tuple[str, list[dict]]]:
    """Return NUMA policy and specs by alias; may raise PciInvalidAlias."""
    return _alias_reader()()


def forget_pci_aliases() -> None:
    """Make Nova read the PCI aliases again, as the options have changed."""
    if (clear := getattr(_alias_reader(), 'cache_clear', None)) is not None:
        clear()


def _alias_reader() -> Callable:
    # NOTE: Before commit ae064caf16 (bug 2102038, Nova 32.0.0 and 31.3.1) the
    # name is private, and there is no cache.
    from nova.pci import request
    return (getattr(request, 'get_alias_from_config', None)
            or request._get_alias_from_config)


def pci_alias_policy(name: str) -> str | None:
    """Return a PCI alias's NUMA policy in nova.conf; None if there is none."""
    try:
        aliases = pci_aliases()
    except exception.PciInvalidAlias:
        return None
    return aliases[name][0] if name in aliases else None


def numa_topology_limits(cpu_ratio: float, ram_ratio: float,
                         network_metadata=None):
    limits = objects.NUMATopologyLimits(
        cpu_allocation_ratio=cpu_ratio, ram_allocation_ratio=ram_ratio)
    if network_metadata is not None:
        limits.network_metadata = network_metadata
    return limits


def host_of_server(uuid: str) -> str:
    """Return a server's host; "" if none or unread in ``_CELL_SECONDS``."""
    try:
        return _server(uuid).host or ''
    except Exception as exc:
        LOG.debug('Nova does not say where server %s is: %s', uuid, exc)
        return ''


def may_be_live_migration(uuid: str) -> bool:
    """Return whether a move is a live migration; True if unreadable."""
    # NOTE: The conductor sends the same request for each kind of move. But
    # nova-api has set the task of the server before, and "migrating" is that
    # of live migrations only.
    from nova.compute import task_states
    try:
        return _server(uuid).task_state == task_states.MIGRATING
    except Exception as exc:
        LOG.warning('Nova does not say which move server %s makes; it is '
                    'taken to be a live migration: %s', uuid, exc)
        return True


def _server(uuid: str):
    """Return an ``Instance`` without optional fields; may raise any error."""
    from nova import context as nova_context
    context = nova_context.get_admin_context()

    def read(cell_context):
        return objects.Instance.get_by_uuid(
            cell_context, uuid, expected_attrs=[])

    cell = objects.InstanceMapping.get_by_instance_uuid(
        context, uuid).cell_mapping
    result, = nova_context.scatter_gather_cells(
        context, [cell], _CELL_SECONDS, read).values()
    if isinstance(result, objects.Instance):
        return result
    if isinstance(result, Exception):
        raise result
    raise exception.CellTimeout()


def deleted_servers(uuids: Iterable[str]) -> set[str]:
    """Return which servers Nova has deleted or deletes; may raise any error.

    Servers that are not in the API database are not included.
    """
    from nova import context as nova_context
    return {
        mapping.instance_uuid
        for mapping in objects.InstanceMappingList.get_by_instance_uuids(
            nova_context.get_admin_context(), list(uuids))
        if mapping.queued_for_delete}


def has_connected_servers(uuids: Iterable[str] | None = None) -> bool:
    """Return whether Nova has plugged a port for any server on a host.

    Only the latest ``_LOOKED_AT`` servers of each cell are read, or those in
    ``uuids``.  Any error of the databases may be raised.
    """
    from nova import context as nova_context
    context = nova_context.get_admin_context()
    filters: dict[str, ty.Any] = {'deleted': False}
    if uuids is not None:
        filters['uuid'] = list(uuids)
    for cell in objects.CellMappingList.get_all(context):
        if cell.is_cell0():
            continue
        with nova_context.target_cell(context, cell) as cell_context:
            servers = objects.InstanceList.get_by_filters(
                cell_context, filters, limit=_LOOKED_AT,
                expected_attrs=['info_cache'])
        if any(server.host and server.info_cache is not None
               and server.info_cache.network_info for server in servers):
            return True
    return False
