# SPDX-License-Identifier: Apache-2.0
"""Compute the shape of a host: the inputs of a decision that vary by host.

Of a thousand hosts only some differ in shape: free CPUs and pages matter only
in whether a guest cell fits, devices only in whether there are enough.  Hosts
of the same shape share one decision.

Everything that :mod:`nfv_sched.fit.numa.decide` and the rules read of a host
must be part of its shape.
"""

from collections.abc import Hashable, Mapping, Sequence

from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import decide
from nfv_sched.fit.numa import evaluation as numa_evaluation
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import topology


def host_shape(evaluation: numa_evaluation.Evaluation, terms: decide.Terms,
               demands: tuple[pci.Demand, ...],
               mapping: Mapping | None) -> Hashable | None:
    """Return the shape of a host for a request.

    :param mapping: None or empty without PCI in Placement
    :returns: None if the host must be decided about by itself: if Nova's
        answer depends on the course of its search, if a guest with several
        NUMA nodes does not fit, or if the PCI devices cannot be read
    """
    guest, host = evaluation.guest, evaluation.host
    masks, cells = evaluation.masks, host.cells
    if evaluation.pristine.any_pages or guest.any_pages or (
            not evaluation.uniform):
        return None
    several = len(guest.cells) > 1
    # A cell of a mixed guest may get the id of a host cell that it does not
    # fit (see Evaluation._fits), so the course of the search matters.
    if several and (
            not candidates.has_matching(masks)
            or any(cell.cpus == topology.MIXED for cell in guest.cells)):
        return None
    static = fits = None
    # Where all cells fit now, they fit on an empty host, too.
    if masks.count(host.all_cells) != len(masks):
        static = evaluation.static_masks
        if not evaluation.interchangeable:
            fits = evaluation.static_fits
    order = None
    # With a single choice the order of the search does not matter.
    if several or masks[0] & masks[0] - 1:
        order = tuple(evaluation.order)
    shape = (
        tuple([cell.id for cell in cells]), masks, static, fits, order,
        host.networks, tuple([
            rule.read(host, terms.names) for rule in terms.rules]))
    pools = evaluation.pools
    if not demands or pools is None:
        return shape
    try:
        devices = of_devices(pools, demands, mapping, cells)
        # A value may be a list, such as the capabilities of a network device.
        hash(devices)
    except (AttributeError, LookupError, TypeError):
        return None  # pci.HostDevices raises the right error
    return shape, devices


def of_devices(pools: Sequence[Mapping], demands: tuple[pci.Demand, ...],
               mapping: Mapping | None,
               cells: Sequence[topology.HostCell]) -> Hashable:
    """Return the part of a shape that concerns PCI devices.

    Counts above the requested number are cut to one more than that.  Provider
    UUIDs become numbers: it only matters which devices have the same provider.

    :returns: a tuple; not hashable if a pool holds a value that is not
    :raises Exception: any, if a pool lacks its fields
    """
    most = 1
    near: list = [cell.id for cell in cells]
    numbers: dict = {}
    providers = []
    for demand in demands:
        # Requests share pools, so what one leaves must be told apart, too.
        most += demand.count
        if pci.SOCKET in (demand.policy, demand.claimed):
            near += [cell.socket for cell in cells]
        of_demand = pci.providers(demand, mapping)
        most = max(most, len(of_demand) + 1)
        providers.append(tuple([
            numbers.setdefault(provider, len(numbers))
            for provider in of_demand]))
    pool_items = []
    for pool in pools:
        provider = pool.get('rp_uuid')
        if pool['count'] > most:
            pool = {**pool, 'count': most}
        if provider is not None:
            pool = {**pool, 'rp_uuid': numbers.setdefault(
                provider, len(numbers))}
        # In the order of the pools, in which Nova takes devices.
        pool_items += tuple(pool), tuple(pool.values())
    return tuple(near), tuple(providers), tuple(pool_items)
