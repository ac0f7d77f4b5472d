# SPDX-License-Identifier: Apache-2.0
"""Scheduler filters for network functions."""

from nfv_sched import extensions


def all_filters() -> list[type]:
    """The filter classes of the entry-point group ``nfv_sched.filters``.

    For ``[filter_scheduler] available_filters``.
    """
    return extensions.classes('nfv_sched.filters')
