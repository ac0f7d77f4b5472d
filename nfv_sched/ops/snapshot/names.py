# SPDX-License-Identifier: Apache-2.0
"""Check names and IDs in files, which commands may be printed with."""

import re
import unicodedata

_UUID = re.compile('-?'.join('[0-9a-fA-F]{%d}' % digits
                             for digits in (8, 4, 4, 4, 12)))
_BREAKS = ('Zl', 'Zp')
_LONGEST = 255

#: What a name that :func:`is_host` refuses should be.
HOST = ('must be the name of a host: without white space, control characters '
        'or "-" at the beginning, 255 characters at most')
#: The same of :func:`is_printable`, and of :func:`is_uuid`.
PRINTABLE = 'must be printable characters, 255 at most'
UUID = 'must be a UUID'


def is_uuid(text: str) -> bool:
    """Return whether it is a UUID, with or without hyphens."""
    # Not uuidutils.is_uuid_like(): that takes hyphens anywhere.
    return _UUID.fullmatch(text) is not None


def is_printable(text: str) -> bool:
    """Return whether Nova's API takes it as a name of a flavor."""
    return len(text) <= _LONGEST and all(
        not category.startswith('C') and category not in _BREAKS
        for category in map(unicodedata.category, text))


def is_host(text: str) -> bool:
    """Return whether a service can use this name of a host."""
    # oslo.config allows less: domain names and addresses.  What is refused
    # here is what a shell or a client could take for something else.
    return (is_printable(text) and not text.startswith('-')
            and len(text.split()) == 1 and text == text.strip())
