#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""Decide about requests that ask for nothing beyond stock Nova.

Most requests are such, so this is the hot path: no ``visit.Visit`` is made,
and the search for a guest with one NUMA node ends at the first host NUMA node
that it fits.
"""

import functools

from nfv_sched.host import visit
from nfv_sched import limits
from nfv_sched.numa import decide
from nfv_sched.numa import evaluation as numa_evaluation
from nfv_sched.numa import fit
from nfv_sched.numa import pci
from nfv_sched.numa import shape
from nfv_sched.numa import shortage
from nfv_sched.numa import topology
from nfv_sched import reasons
from nfv_sched.request import Request
from nfv_sched.request import RequestNote
from nfv_sched import terms


def judge(host_state, request: Request,
          note: RequestNote) -> decide.Decision | None:
    """Decide about a host, and write its limits if it is accepted.

    :param host_state: ``nova.scheduler.host_manager.HostState`` with
        allocation ratios and candidates
    :param request: the request; its ``plain`` is true
    :param note: the note of the request
    :returns: None if only ``visit.Visit.judge`` can decide
    :raises topology.OddTopologyError: if its NUMA nodes cannot be read
    :raises pci.OddDevicesError: if its PCI devices cannot be read
    """
    candidates = host_state.allocation_candidates
    if request.demands and len(candidates) > 1:
        return None
    ratio = host_state.cpu_allocation_ratio
    ratios = fit.ratios(ratio, host_state.ram_allocation_ratio)
    guest = request.guest
    if len(guest.cells) == 1 and not (
            guest.any_pages or request.physnets or request.tunneled):
        if not _fits_a_cell(host_state, request, note, ratios):
            return decide.Decision(False, functools.partial(
                _shortage, host_state, request, ratios))
        limits.write(host_state, note, request, decide.PLAIN, ratio)
        return decide.PLAIN
    view = topology.host_topology(host_state.numa_topology)
    if view is None or numa_evaluation.many_permutations(
            len(view.cells), len(guest.cells)):
        return None
    evaluation = numa_evaluation.Evaluation(
        view, guest, ratios, visit.pools(host_state), bool(request.demands),
        terms.settings(note).sorting, request.pristine)
    if len(candidates) > 1 and not evaluation.uniform:
        return None
    decision = decide.decide_plain(
        evaluation, request, devices_of(host_state, request, view))
    if decision is not None and decision.accepted:
        limits.write(host_state, note, request, decision, ratio)
    return decision


def _fits_a_cell(host_state, request: Request, note: RequestNote,
                 ratios: fit.Ratios) -> bool:
    """Whether a guest with one NUMA node fits any NUMA node of the host."""
    cell, reserved = request.guest.cells[0], request.guest.reserved
    devices = None
    if request.demands:
        view = topology.host_topology(host_state.numa_topology)
        if view is None:
            return False
        devices = _like_devices(host_state, request, note, view)
        host_cells = view.cells
    else:
        host_cells = map(topology.HostCell, host_state.numa_topology.cells)
    bit = 1
    for host_cell in host_cells:
        if fit.check(host_cell, cell, cell.pagesize, reserved,
                     ratios) == fit.FITS and (
                         devices is None or devices.accepts(bit)):
            return True
        bit <<= 1
    return False


def devices_of(
    host_state, request: Request, view: topology.HostTopology,
) -> pci.Devices | None:
    """The free PCI devices of a host, for its first allocation candidate.

    :param host_state: ``nova.scheduler.host_manager.HostState``
    :param request: the request
    :param view: the host's NUMA nodes
    :returns: None if the request asks for none, or the host reports none
    """
    free = visit.pools(host_state)
    if not request.demands or free is None:
        return None
    return pci.Devices(
        pci.HostDevices(free, request.demands, view),
        visit.first_mapping(host_state))


def _like_devices(
    host_state, request: Request, note: RequestNote,
    view: topology.HostTopology,
) -> pci.Devices | None:
    """As :func:`devices_of`; hosts with like devices share one object.

    Those whose pools give the same answers to the request are alike; see
    ``shape.of_devices``.
    """
    free = visit.pools(host_state)
    if free is None:
        return None
    try:
        key = shape.of_devices(
            free, request.demands,
            host_state.allocation_candidates[0].get('mappings'), view.cells)
        known = note.decisions.get(key)
    except Exception:  # odd pools; devices_of() raises the right error
        return devices_of(host_state, request, view)
    if known is None:
        known = note.decisions[key] = devices_of(host_state, request, view)
    return known


def _shortage(host_state, request: Request,
              ratios: fit.Ratios) -> reasons.Reason:
    """Why the guest does not fit the host."""
    view = topology.host_topology(host_state.numa_topology)
    if view is None:
        return reasons.resolve(visit.NO_HOST_TOPOLOGY.reason)
    return shortage.capacity_reason(
        numa_evaluation.Evaluation(view, request.guest, ratios),
        devices=devices_of(host_state, request, view))
