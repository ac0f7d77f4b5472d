# SPDX-License-Identifier: Apache-2.0

"""Collect the problems of a cloud file, with file, line and field."""

from collections.abc import Iterable, Mapping, Sequence
import difflib
import re

from nfv_sched import strings

Path = tuple[str | int, ...]

_MAX_ERRORS = 20


class InputError(Exception):
    """A cloud file that cannot be used.

    :param problems: texts on what is wrong, each of which is shown as a line
    """

    def __init__(self, problems: Sequence[str]):
        # Names in a file may have line breaks.
        problems = [strings.line(problem) for problem in problems]
        super().__init__('\n'.join(problems))
        self.problems = tuple(problems)


def field_name(path: Iterable[str | int]) -> str:
    """The name of a field in messages: ``hosts[0].cores``.

    :param path: keys and positions that lead to the field
    """
    text = ''
    for part in path:
        if isinstance(part, int):
            text += f'[{part}]'
        elif re.fullmatch(r'[\w-]+', part):
            text += f'.{part}' if text else part
        else:
            text += f'[{part!r}]'
    return text


def near(word: str, known: Iterable[str]) -> str:
    """End of a message on an unknown name: a similar name, or all names.

    :param word: the unknown name
    :param known: the known names
    :returns: empty if no name is similar and too many are known
    """
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f'; did you mean {close[0]!r}?'
    if known and len(known) <= 20:
        return f'; known: {", ".join(sorted(known))}'
    return ''


class Problems:
    """The problems of one file.

    :param path: the file
    :param marks: path of each field -> its line
    """

    def __init__(self, path: str, marks: Mapping[Path, int]):
        self.path = path
        self._marks = marks
        self._found: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._found)

    def line(self, path: Path) -> int:
        """The line of a field, or of the nearest field that contains it.

        :param path: path of the field
        """
        while path and path not in self._marks:
            path = path[:-1]
        return self._marks.get(path, 1)

    def add(self, path: Path, message: str) -> None:
        """Add a problem of a field.

        :param path: path of the field
        :param message: what is wrong
        """
        line = self.line(path)
        field = field_name(path)
        text = f'{self.path}:{line}: {field + ": " if field else ""}{message}'
        if (line, text) not in self._found:
            self._found.append((line, text))

    def stop_if_wrong(self) -> None:
        """Raise the problems so far.

        :raises InputError: if there are any
        """
        if not self._found:
            return
        texts = [text for _, text in sorted(self._found)]
        if len(texts) > _MAX_ERRORS:
            more = len(texts) - _MAX_ERRORS
            texts = texts[:_MAX_ERRORS] + [f'{self.path}: {more} more']
        raise InputError(texts)

    def known(self, path: Path, kind: str, name: str,
              names: Iterable[str]) -> bool:
        """Whether a name exists; adds a problem if not.

        :param path: path of the field with the name
        :param kind: kind of the object, for the message
        :param name: the name
        :param names: the names that exist
        """
        if name in names:
            return True
        self.add(path, f'there is no {kind} {name!r}{near(name, names)}')
        return False
