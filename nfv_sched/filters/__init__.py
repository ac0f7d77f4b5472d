# SPDX-License-Identifier: Apache-2.0
"""Provide the scheduler filters for network functions."""

from nfv_sched.base import extensions


def all_filters() -> list[type]:
    """Return the classes for ``[filter_scheduler] available_filters``."""
    return extensions.classes('nfv_sched.filters')
