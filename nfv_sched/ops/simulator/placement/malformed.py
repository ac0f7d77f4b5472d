# SPDX-License-Identifier: Apache-2.0
"""Judge whether Placement can read a query for allocation candidates.

It answers one that it cannot read with status 400, whatever its providers
have, and Nova then finds no host.
"""

from collections.abc import Iterator
import dataclasses
import enum
import re
from urllib import parse

_GROUP = re.compile(r'(resources|required)([a-zA-Z0-9_-]{1,64})?')
_WIDE = ('limit', 'group_policy', 'root_required', 'same_subtree')
_NAME = re.compile(r'[A-Z0-9_]+')
_AMOUNT = re.compile(r'[^:]*:0*[1-9][0-9]*')


class QueryFault(enum.Enum):
    """Kind of mistake in a query; the values follow "Placement"."""

    GROUP_POLICY = 'wants a group_policy for several numbered groups: {}'
    NO_RESOURCES = 'wants at least one resource'
    NO_RESOURCES_IN_GROUP = 'wants resources, not only traits, in group {}'
    CONFLICT = 'cannot both require and forbid {}'
    NAME = 'knows no names such as {}'
    FORM = 'cannot read {}'


@dataclasses.dataclass(frozen=True, slots=True)
class Malformed:
    fault: QueryFault
    #: suffixes of groups, traits, resource classes, or parts of the query, by
    #: the kind of fault
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.fault.value.format(', '.join(self.names))


def find(text: str) -> Malformed | None:
    """Return why Placement cannot read a query string; None if it can."""
    # Aggregates and trees are Nova's own UUIDs, not words of a flavor.
    pairs = [(key, value) for key, value in parse.parse_qsl(
        text, keep_blank_values=True)
        if not key.startswith(('member_of', 'in_tree'))]
    return next(_faults(pairs), None)


def _faults(pairs: list[tuple[str, str]]) -> Iterator[Malformed]:
    """Yield what is wrong; the first is what Placement says, or near it."""
    # Suffix of a group -> its resource classes.
    groups: dict[str, list[str]] = {}
    traits: dict[str, list[str]] = {}
    blank: set[str] = set()
    together: set[str] = set()
    has_policy = False
    for key, value in pairs:
        match = _GROUP.fullmatch(key)
        name, suffix = match.groups('') if match else (key, '')
        part = Malformed(QueryFault.FORM, (f'{key}={value}',))
        if match:
            groups.setdefault(suffix, [])
        elif key not in _WIDE:
            yield part
        items = [item.strip() for item in value.split(',')]
        match name:
            case 'resources' if not value.strip():
                blank.add(suffix)
            case 'resources':
                if not all(map(_AMOUNT.fullmatch, value.split(','))):
                    yield part
                groups[suffix] = [
                    item.partition(':')[0] for item in value.split(',')]
            case 'required' | 'root_required':
                if value.startswith('in:') or not all(
                        item.lstrip('!') for item in items):
                    yield part
                traits[key] = items
            case 'same_subtree':
                together.update(items)
            case 'group_policy':
                has_policy = True
    alone = {suffix for suffix, classes in groups.items()
             if not classes} - together | blank
    if any(alone):
        yield Malformed(QueryFault.NO_RESOURCES_IN_GROUP,
                        tuple(sorted(filter(None, alone))))
    if alone or not any(groups.values()):
        yield Malformed(QueryFault.NO_RESOURCES)
    if not together <= groups.keys():
        yield Malformed(QueryFault.FORM,
                        tuple(sorted(together - groups.keys())))
    for items in traits.values():
        if both := {item for item in items if f'!{item}' in items}:
            yield Malformed(QueryFault.CONFLICT, tuple(sorted(both)))
    numbered = tuple(filter(None, groups))
    if len(numbered) > 1 and not has_policy:
        yield Malformed(QueryFault.GROUP_POLICY, numbered)
    odd = tuple([name for names in (*groups.values(), *traits.values())
                 for name in names if not _NAME.fullmatch(name.lstrip('!'))])
    if odd:
        yield Malformed(QueryFault.NAME, odd)
