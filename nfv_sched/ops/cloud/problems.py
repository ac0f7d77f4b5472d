# SPDX-License-Identifier: Apache-2.0
"""Collect the problems of a cloud file, with file, line and field."""

from collections.abc import Iterable, Mapping, Sequence
import difflib
import re

from nfv_sched.base import strings
from nfv_sched.ops.cli import errors

Path = tuple[str | int, ...]

_MAX_ERRORS = 20
#: More are not looked for.
MAX_FOUND = 1000
# Names among which a similar one is looked for.
_MAX_NAMES = 10_000


class InputError(errors.CommandError):
    """A cloud file with problems; each message is shown as a line."""

    may_be_unread = True

    def __init__(self, problems: Sequence[str]):
        # Messages contain names of the file, which may have line breaks.
        problems = [strings.line(problem) for problem in problems]
        super().__init__('\n'.join(problems))
        self.problems = tuple(problems)


def field_name(path: Iterable[str | int]) -> str:
    """Return the name of a field for messages: ``hosts[0].cores``."""
    text = ''
    for part in path:
        if isinstance(part, str) and len(part) > 60:
            part = part[:57] + '...'
        if isinstance(part, int):
            text += f'[{part}]'
        elif re.fullmatch(r'[\w-]+', part):
            text += f'.{part}' if text else part
        else:
            text += f'[{part!r}]'
    return text


def near(word: str, names: Iterable[str]) -> str:
    """Return a similar name, or else all, for messages; empty if too many."""
    names = list(names)
    if len(names) > _MAX_NAMES:
        return ''
    if close := difflib.get_close_matches(word, names, n=1):
        return f'; did you mean {close[0]!r}?'
    if names and len(names) <= 20:
        return f'; known: {", ".join(sorted(names))}'
    return ''


class Problems:
    """The problems of one file; ``marks`` has the line of each field."""

    def __init__(self, path: str, marks: Mapping[Path, int]):
        self.path = path
        self._marks = marks
        self._errors: dict[tuple[int, str], None] = {}

    def __len__(self) -> int:
        return len(self._errors)

    @property
    def are_many(self) -> bool:
        """Whether there are so many that no others need to be found."""
        return len(self._errors) >= MAX_FOUND

    def line(self, path: Path) -> int:
        """Return the line of a field, or of the field that contains it."""
        while path and path not in self._marks:
            path = path[:-1]
        return self._marks.get(path, 1)

    def add(self, path: Path, message: str) -> None:
        line = self.line(path)
        field = field_name(path)
        text = f'{self.path}:{line}: {field + ": " if field else ""}{message}'
        self._errors[line, text] = None

    def stop_if_wrong(self) -> None:
        texts = [text for _, text in sorted(self._errors)]
        if len(texts) > _MAX_ERRORS:
            texts[_MAX_ERRORS:] = [
                f'{self.path}: {len(texts) - _MAX_ERRORS} more']
        if texts:
            raise InputError(texts)

    def known(self, path: Path, kind: str, name: str,
              names: Iterable[str]) -> None:
        if name not in names:
            hint = near(name, names) if len(self) < _MAX_ERRORS else ''
            self.add(path, f'no {kind} named {name!r}{hint}')
