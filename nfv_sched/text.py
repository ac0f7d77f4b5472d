#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""Short texts for log messages and command output."""

from collections.abc import Iterable
import re
import unicodedata

_NAMED = 5

_UNUSUAL = re.compile(r'[^\n\t -~]')
# Characters without a picture that str.isprintable() lets pass: fillers,
# joiners and selectors of variants.
_INVISIBLE = re.compile(
    '[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f'
    '\uffa0\U000e0100-\U000e01ef]')
_JOINER, _EMOJI_STYLE = '\u200d', '\ufe0f'


def some(names: Iterable[str], most: int = _NAMED) -> str:
    """Names as a text, such as ``a, b and 3 more``.

    :param names: names in any order; they are sorted
    :param most: how many are named at most
    """
    names = sorted(names)
    more = len(names) - most
    return ', '.join(names[:most]) + (f' and {more} more' if more > 0 else '')


def count(number: int, noun: str) -> str:
    """A number of things, such as ``3 hosts``.

    :param number: how many
    :param noun: one of them
    """
    return f'{number} {noun}{"" if number == 1 else "s"}'


def brief(exc: Exception | str) -> str:
    """The first line of an error message, without a full stop.

    :param exc: an exception, or its message
    """
    lines = str(exc).splitlines() or [type(exc).__name__]
    return lines[0].rstrip('. ')


def visible(text: str) -> str:
    """Escape what a terminal does not show or obeys, but for breaks."""
    # Names come from tenants, and files may have been edited: a control
    # sequence, a change of direction or a character of no width would change
    # what a line says.
    return text if text.isascii() and text.isprintable() else _UNUSUAL.sub(
        _escaped, text)


def line(text: str) -> str:
    """Escape line breaks and tabs, too."""
    return visible(text).replace('\n', r'\n').replace('\t', r'\t')


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    if (char.isprintable() and not _INVISIBLE.match(char)
            or _is_of_emoji(match.string, match.start())):
        return char
    return char.encode('unicode_escape').decode('ascii')


def _is_of_emoji(text: str, index: int) -> bool:
    """Whether a character without a picture belongs to an emoji."""
    before, after = text[max(index - 1, 0):index], text[index + 1:index + 2]
    if text[index] == _EMOJI_STYLE:
        return _is_symbol(before)
    return text[index] == _JOINER and _is_symbol(after) and (
        _is_symbol(before) or before == _EMOJI_STYLE)


def _is_symbol(char: str) -> bool:
    # Sk: the colours of skin.
    return char != '' and unicodedata.category(char) in ('So', 'Sk')
