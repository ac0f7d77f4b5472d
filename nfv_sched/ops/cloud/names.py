# SPDX-License-Identifier: Apache-2.0
"""Check and look up names and IDs.

Those in files appear in printed commands; those on the command line may be
misspelt.
"""

import collections
from collections.abc import Callable, Iterable
import dataclasses
import difflib
import re
import unicodedata

from nfv_sched.base import strings

_UUID = re.compile('-?'.join('[0-9a-fA-F]{%d}' % digits
                             for digits in (8, 4, 4, 4, 12)))
# Maximum number of names that a message suggests.
_NEAREST = 3
_BREAKS = ('Zl', 'Zp')
_LONGEST = 255


def is_uuid(text: str) -> bool:
    # Not uuidutils.is_uuid_like(): it accepts hyphens anywhere.
    return _UUID.fullmatch(text) is not None


def is_printable(text: str) -> bool:
    return len(text) <= _LONGEST and all(
        not category.startswith('C') and category not in _BREAKS
        for category in map(unicodedata.category, text))


def is_host(text: str) -> bool:
    # oslo.config allows less: domain names and addresses.  This check
    # refuses only what a shell or a client could misread.
    return (is_printable(text) and not text.startswith('-')
            and len(text.split()) == 1 and text == text.strip())


@dataclasses.dataclass(frozen=True, slots=True)
class NameRule:
    """Rule for a name or ID in a file, a mark of fields."""

    accepts: Callable[[str], bool]
    text: str  #: what it must be, for people


UUID = NameRule(is_uuid, 'must be a UUID')
PRINTABLE = NameRule(is_printable, 'must be printable characters, 255 at most')
HOST = NameRule(
    is_host, 'must be the name of a host: without white space, control '
    'characters or "-" at the beginning, 255 characters at most')


def unknown(noun: str, name: str, names: Iterable[str],
            ids: Iterable[str] = ()) -> str:
    """Return the message for a name that nothing has.

    :param names: the names that exist; those that begin so are suggested, or
        else those with a similar name, or first label of a name, or else any
    :param ids: IDs that can be given, too; those that begin so are suggested
    """
    names = {each for each in names if each}
    start = name.lower()
    near = sorted({each for each in (*names, *ids)
                   if start and each.lower().startswith(start)})
    if not near:
        by_key: dict[str, set[str]] = collections.defaultdict(set)
        for each in names:
            for key in (each.lower(), each.lower().partition('.')[0]):
                by_key[key].add(each)
        # Of equally similar ones it returns the last by letter first.
        keys = sorted(
            difflib.get_close_matches(start, by_key, _NEAREST),
            key=lambda key: (-difflib.SequenceMatcher(
                None, key, start).ratio(), key))
        near = list(dict.fromkeys(
            each for key in keys for each in sorted(by_key[key])))
    suggested = ' or '.join(map(strings.line, near[:_NEAREST]))
    return f'no {noun} named {name!r}' + (
        f'; did you mean {suggested}?' if near
        else there_are(names))


def there_are(names: Iterable[str]) -> str:
    """Return the end of a message that names some of what there is."""
    some = strings.some(set(map(strings.line, names)))
    return f'; there are: {some}' if some else ''
