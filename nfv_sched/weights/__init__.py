# SPDX-License-Identifier: Apache-2.0
"""Provide the scheduler weighers for network functions."""

from nfv_sched.base import extensions


def all_weighers() -> list[type]:
    """Return the classes for ``[filter_scheduler] weight_classes``."""
    return extensions.classes('nfv_sched.weighers')
