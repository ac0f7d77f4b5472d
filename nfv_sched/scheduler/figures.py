# SPDX-License-Identifier: Apache-2.0
"""Give each request its usage snapshot and Placement's answer."""

from collections.abc import Mapping
import time

from nfv_sched.fit.request import Request
from nfv_sched.ledger import neutron
from nfv_sched.ledger import reader
from nfv_sched.limits import reservations
from nfv_sched.limits import sources
from nfv_sched.scheduler.limits_note import NetworkNote
from nfv_sched.scheduler.notes import note_of
from nfv_sched.scheduler.notes import RequestNote
from nfv_sched.scheduler import process


def new_sources() -> sources.Sources:
    """Return sources that read Neutron from the first ``get`` on."""
    memory = reservations.Memory()
    return sources.Sources(neutron.SnapshotSource(memory=memory), memory)


def process_sources() -> sources.Sources:
    """Return the sources of this process; made at the first call."""
    return process.STATE.network_sources(new_sources)


def sources_of(request_note: RequestNote) -> sources.Sources:
    """Return the sources that a request reads."""
    return request_note.sources or process_sources()


def placement_asked(spec_obj) -> None:
    """Record when Nova is about to query Placement for candidates."""
    # What this process places from now on may be missing in the answer.
    note_of(spec_obj).queried_at = time.monotonic()


def placement_answered(spec_obj, summaries: Mapping | None) -> None:
    """Record Placement's answer for the request.

    :param summaries: see ``reader.Reading``; None if Placement was not queried
    """
    note = note_of(spec_obj)
    now = time.monotonic()
    note.ledgers = None if summaries is None else reader.Reading(
        summaries, now if note.queried_at is None else note.queried_at, now)
    note.drop(NetworkNote)


def for_request(request_note: RequestNote, request: Request) -> NetworkNote:
    """Return the network note of a request; a new one for each server.

    :param request: the request as read now
    """
    note = request_note.part(NetworkNote)
    if note is None or note.request is not request or (
            note.instance != request_note.instance):
        note = NetworkNote(
            request_note, request, sources_of(request_note))
        # A multi-create may take longer than TAKE_SECONDS; its reservations
        # live as long as it places servers.
        for host, instance in request_note.taken:
            note.recent.prolong(host, instance)
        request_note.keep(note)
    return note
