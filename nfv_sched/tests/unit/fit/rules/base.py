# SPDX-License-Identifier: Apache-2.0
"""Rules as requests have them."""

from nfv_sched.scheduler import notes


def rules_of(spec):
    found = notes.note_of(spec).read(spec)
    if found.error is not None:
        raise AssertionError(str(found.error))
    return found.rules
