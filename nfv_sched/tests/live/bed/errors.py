# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with a bed, in words for whoever started it."""


class BedError(Exception):
    """The bed cannot do what was asked; the message says why."""
