# SPDX-License-Identifier: Apache-2.0
"""Give each request Placement's answer and what Neutron says of its ports."""

from collections.abc import Mapping

from nfv_sched.fit.request import Request
from nfv_sched.ledger import neutron
from nfv_sched.ledger import reader
from nfv_sched.scheduler.limits_note import NetworkNote
from nfv_sched.scheduler.notes import note_of
from nfv_sched.scheduler.notes import RequestNote
from nfv_sched.scheduler import process


def placement_answered(spec_obj, summaries: Mapping | None) -> None:
    """Record Placement's answer for the request.

    :param summaries: see ``reader.Reading``; None if Placement was not queried
    """
    note = note_of(spec_obj)
    note.ledgers = None if summaries is None else reader.Reading(summaries)
    note.drop(NetworkNote)


def for_request(request_note: RequestNote, request: Request) -> NetworkNote:
    """Return the network note of a request, for all of its servers.

    :param request: the request as read now
    """
    note = request_note.part(NetworkNote)
    # Nova changes the request between the servers of a multi-create, but not
    # what they take.
    if note is None or not note.is_for(request):
        note = NetworkNote(
            request_note, request, request_note.lookups or (
                process.STATE.lookups_in_neutron(neutron.Lookups)))
        request_note.keep(note)
    return note
