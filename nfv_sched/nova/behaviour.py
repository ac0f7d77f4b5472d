# SPDX-License-Identifier: Apache-2.0
"""Look how the installed Nova behaves where its releases differ.

:mod:`nfv_sched.nova.scheduler` goes by the release.  A package of a
distribution may have a change of a later one, which small examples show.
``nfv-sched-status upgrade check`` runs them.
"""

from collections.abc import Callable, Iterator
import types

from nova import objects

from nfv_sched.nova import scheduler


def _claims_sort_by_devices() -> bool:
    """Claim one of two equal NUMA nodes, of which the first has a device."""
    from nova.compute import claims
    cells = [objects.NUMACell(
        id=number, cpuset={number}, pcpuset=set(), memory=2, cpu_usage=0,
        memory_usage=0, pinned_cpus=set(), siblings=[], mempages=[])
        for number in range(2)]
    claim = claims.Claim.__new__(claims.Claim)
    claim.instance = objects.Instance(
        numa_topology=objects.InstanceNUMATopology(
            cells=[objects.InstanceNUMACell(
                id=0, cpuset={0}, pcpuset=set(), memory=1)]))
    # All that the claim reads of the resource tracker of a compute node.
    claim.tracker = types.SimpleNamespace(
        pci_tracker=types.SimpleNamespace(stats=types.SimpleNamespace(
            pools=[{'numa_node': 0, 'count': 1}])))
    claim._pci_requests = objects.InstancePCIRequests(requests=[])
    claim._test_numa_topology(
        objects.ComputeNode(numa_topology=objects.NUMATopology(
            cells=cells)._to_json()), None)
    return claim.claimed_numa_topology.cells[0].id == 1


def _pinned_guests_need_cell_memory() -> bool:
    """Try a NUMA cell with no memory left, but a free page."""
    from nova.virt import hardware
    host = objects.NUMATopology(cells=[objects.NUMACell(
        id=0, cpuset=set(), pcpuset={0}, memory=1, cpu_usage=0,
        memory_usage=1, pinned_cpus=set(), siblings=[{0}], socket=0,
        mempages=[objects.NUMAPagesTopology(
            size_kb=1024, total=1, used=0, reserved=0)])])
    guest = objects.InstanceNUMATopology(cells=[objects.InstanceNUMACell(
        id=0, cpuset=set(), pcpuset={0}, memory=1,
        cpu_policy=objects.fields.CPUAllocationPolicy.DEDICATED)])
    return not hardware.numa_fit_instance_to_host(host, guest, {})


def live_migration_carries_limits() -> bool:
    """Return whether live migrations carry limits; raise if not shown."""
    from nova.conductor.tasks import live_migrate
    sent: list = []
    limits = objects.SchedulerLimits()
    task = live_migrate.LiveMigrationTask.__new__(
        live_migrate.LiveMigrationTask)
    # All that the task reads and calls on its way to the destination.
    vars(task).update(
        context=None, source='', migration=None, limits=None,
        block_migration=None, disk_over_commit=None,
        instance=types.SimpleNamespace(
            uuid='', resources=None, pci_requests=None),
        _get_request_spec_for_select_destinations=lambda *args: (
            types.SimpleNamespace(maps_requested_resources=False,
                                  get_request_group_mapping=lambda: None)),
        query_client=types.SimpleNamespace(
            select_destinations=lambda *args, **kwargs: [[
                objects.Selection(service_host='', nodename='',
                                  limits=limits)]]),
        _check_compatible_with_source_hypervisor=lambda *args: None,
        compute_rpcapi=types.SimpleNamespace(
            check_can_live_migrate_destination=lambda *args, **kwargs: (
                sent.extend([*args, *kwargs.values()]))),
        network_api=types.SimpleNamespace(
            has_port_binding_extension=lambda *args: False))
    task._find_destination()
    return any(value is limits for value in sent)


_EXAMPLES: tuple[tuple[Callable[[], bool], Callable[[], bool], str], ...] = (
    (scheduler.claims_sort_by_devices, _claims_sort_by_devices,
     'claims sort NUMA nodes by PCI devices'),
    (scheduler.pinned_guests_need_cell_memory, _pinned_guests_need_cell_memory,
     'pinned servers need free memory beside huge pages'),
)


def differences() -> Iterator[str]:
    """Yield how Nova differs from its release, a clause each."""
    for expected, observe, what in _EXAMPLES:
        try:
            if observe() != expected():
                yield f'{what}: {"no" if expected() else "yes"}'
        except Exception as exc:
            yield f'{what}: cannot be seen ({type(exc).__name__}: {exc})'
