# SPDX-License-Identifier: Apache-2.0
"""Write short texts for log messages and command output."""

from collections.abc import Iterable
import re
import unicodedata

_NAMED = 5
_MASK = '***'
_WORD = re.compile(r'\S+')
_DELIMITER = re.compile('[/?#]')
_MOST_PARTS = 20
# Characters that are searched for secrets. The answer of a service may have 64
# MiB, and while Python searches, no other thread of nova-scheduler runs.
_MOST_SEARCHED = 1 << 15
# In characters; tokens of Keystone have a few hundred.
_LONGEST_SECRET = 1 << 12
# Tokens of Keystone (Fernet and JWS), headers with a token, and arguments of
# commands: strutils.mask_password() does not know them.
# A run of their characters is searched once: from each "eyJ" in it, it would
# take quadratic time.
_TOKEN = re.compile(
    r'\bgAAAA[\w-]{8,}={0,2}|'
    r'(?<![\w-])(?=[\w-]*?\beyJ)[\w-]++\.[\w-]++\.[\w-]++')
_HEADER = re.compile(
    r'((?:\bX-[a-z-]{0,40}token|\bauthorization)["\']?\s{0,9}[:=]\s{0,9}'
    r'["\']?(?:(?:bearer|basic)\s)?|--[a-z-]{0,40}'
    r'(?:password|secret|token)[ =])[^\s"\',;]+', re.IGNORECASE)

_UNUSUAL = re.compile(r'[^\n\t -~]')
# Invisible characters that str.isprintable() lets pass: blanks, fillers,
# joiners and variation selectors.
_INVISIBLE = re.compile(
    '[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f'
    '\uffa0\U000e0100-\U000e01ef]')
_JOINER, _EMOJI_STYLE = '\u200d', '\ufe0f'


def some(names: Iterable[str], most: int = _NAMED) -> str:
    """Return at most ``most`` names, sorted: ``a, b and 3 more``."""
    names = sorted(names)
    more = len(names) - most
    return ', '.join(names[:most]) + (f' and {more} more' if more > 0 else '')


def count(number: int, noun: str) -> str:
    """Return a number with a noun, such as ``3 hosts``."""
    return f'{number} {noun}{"" if number == 1 else "s"}'


def size(kib: int) -> str:
    """Return a size of pages or memory, such as ``2 MiB``, from KiB."""
    units = ['KiB', 'MiB', 'GiB']
    while len(units) > 1 and kib % 1024 == 0:
        kib //= 1024
        del units[0]
    return f'{kib} {units[0]}'


def short(text: str, most: int = 1000) -> str:
    """Return a text without its middle beyond ``most`` characters."""
    if len(text) <= most:
        return text
    return (f'{text[:most // 2]} [{len(text) - most} characters left out] '
            f'{text[-(most // 2):]}')


def one_line(error: object) -> str:
    """Return an error message as one line, short and without secrets."""
    return short(mask_secrets(' '.join(str(error).split())))


def brief(exc: Exception | str) -> str:
    """Return the first line of an error message, without a full stop."""
    lines = str(exc).splitlines() or [type(exc).__name__]
    return mask_secrets(lines[0].rstrip('. '))


def visible(text: str) -> str:
    """Escape what a terminal hides or obeys, except line breaks and tabs."""
    # Names come from tenants, files may have been edited: control sequences,
    # changes of direction or characters of no width would falsify a line.
    return text if text.isascii() and text.isprintable() else _UNUSUAL.sub(
        _escape, text)


def line(text: str) -> str:
    """Escape like :func:`visible`, and line breaks and tabs."""
    return visible(text).replace('\n', r'\n').replace('\t', r'\t')


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if (char.isprintable() and not _INVISIBLE.match(char)
            or _is_of_emoji(match.string, match.start())):
        return char
    return char.encode('unicode_escape').decode('ascii')


def _is_of_emoji(text: str, index: int) -> bool:
    before, after = text[max(index - 1, 0):index], text[index + 1:index + 2]
    if text[index] == _EMOJI_STYLE:
        return _is_symbol(before)
    return text[index] == _JOINER and _is_symbol(after) and (
        _is_symbol(before) or before == _EMOJI_STYLE)


def _is_symbol(char: str) -> bool:
    # Sk includes the skin tone modifiers.
    return char != '' and unicodedata.category(char) in ('So', 'Sk')


class MaskedError(Exception):
    """An error without passwords and tokens in its message."""

    def __init__(self, message: str = ''):
        super().__init__(mask_secrets(message))


def mask_secrets(message: str) -> str:
    """Mask passwords and tokens; leave out the end of a long message."""
    masked = _mask(message[:_MOST_SEARCHED])
    if len(message) <= _MOST_SEARCHED:
        return masked
    # A secret that was cut looks like none.
    return (f'{masked[:-_LONGEST_SECRET]} '
            f'[the rest of {len(message)} characters left out]')


def _mask(message: str) -> str:
    """Mask passwords and tokens, wherever they are.

    Libraries put the URL that they failed with into their messages, with the
    account that may be in it.  The part of a word before its last ``@`` is
    masked as a whole: passwords have ``/``, ``#`` and ``@`` where they should
    have been quoted.
    """
    # Takes time to import, and --help is to be quick.
    from oslo_utils import strutils
    parts: set[str] = set()
    message = _WORD.sub(lambda match: _mask_account(match[0], parts), message)
    if parts:
        # Such as "'nova:secr' is not a valid host or port".
        message = re.sub(
            rf"(?<=[:'\"])(?:{'|'.join(map(re.escape, parts))})(?=['\"])",
            _MASK, message)
    message = strutils.mask_password(message, _MASK)
    return _HEADER.sub(rf'\g<1>{_MASK}', _TOKEN.sub(_MASK, message))


def _mask_account(word: str, parts: set[str]) -> str:
    """Mask ``user:password`` in a word such as ``http://user:password@host``.

    Without a scheme, it must have a colon to be taken for an account.

    :param parts: text that libraries may take for the port is added to it
    """
    before, at, host = word.rpartition('@')
    start, scheme, account = before.partition('://')
    if not at or not scheme and ':' not in before:
        return word
    password = account.partition(':')[2]
    port = _DELIMITER.split(password, maxsplit=1)[0]
    if port and len(parts) < _MOST_PARTS:
        parts.add(port)
    return f'{start}{scheme}{_MASK}@{host}' if scheme else f'{_MASK}@{host}'
