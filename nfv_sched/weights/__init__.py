# SPDX-License-Identifier: Apache-2.0
"""Scheduler weighers for network functions."""

from nfv_sched import extensions


def all_weighers() -> list[type]:
    """The weigher classes of the entry-point group ``nfv_sched.weighers``.

    For ``[filter_scheduler] weight_classes``.
    """
    return extensions.classes('nfv_sched.weighers')
