# SPDX-License-Identifier: Apache-2.0
"""Find, compare and rewrite the commands and outputs of the documentation.

A ``console`` block with a command of nfv-sched shows its real output, unless
the line before it is a comment ``not run: REASON``.  ``...`` on a line of its
own stands for lines of output that are left out.
"""

from collections.abc import Callable, Iterator
import dataclasses
import fnmatch
import io
import pathlib
import re
from xml.etree import ElementTree

from rich import console as rich_console
from rich import text as rich_text

import nfv_sched

ROOT = pathlib.Path(nfv_sched.__file__).parents[1]
#: Columns of a block in the documentation.
WIDTH = 100

#: How a page begins a block of a terminal session: in reStructuredText a
#: directive, with the block indented; in Markdown a fence.
_DIRECTIVE = re.compile(r'( *)\.\. code-block:: console *')
_FENCE = re.compile(r'( *)```console *')
_NOT_RUN = re.compile(r' *(?:\.\.|<!--) not run: (?P<reason>\S.*?)(?: *-->)?')
_OURS = re.compile(r'\bnfv-sched (?!upgrade)|\bopenstack\b.*? nfv ')
_LEFT_OUT = '...'
#: The time that a simulation took.
_SECONDS = re.compile(r'\bin \d+\.\d s\b')


@dataclasses.dataclass
class Command:
    """A command of a block, and what the page says that it prints.

    The command's lines are as in the page, without the indentation.
    """

    lines: list[str]
    output: list[str]

    @property
    def text(self) -> str:
        return ' '.join(line.removesuffix('\\').strip()
                        for line in self.lines).removeprefix('$').strip()

    def prints(self, output: list[str]) -> bool:
        """Return True if the page shows this output."""
        pattern = ''.join(
            '*' if line == _LEFT_OUT else _literal(f'{line}\n')
            for line in _steady(self.output))
        return fnmatch.fnmatchcase(
            ''.join(f'{line}\n' for line in _steady(output)), pattern)

    def shortened(self, output: list[str]) -> list[str]:
        """Return output with as much left out as in the page."""
        if self.prints(output):
            return self.output
        if _LEFT_OUT not in self.output:
            return output
        head = self.output.index(_LEFT_OUT)
        tail = self.output[::-1].index(_LEFT_OUT)
        return [*output[:head], _LEFT_OUT, *output[len(output) - tail:]]


@dataclasses.dataclass
class Block:
    """A terminal session in a page.

    ``first`` and ``end`` are indices of the lines of the page that it is made
    of; ``reason`` says why it cannot be run, and is None if it can.
    """

    path: pathlib.Path
    first: int
    end: int
    indent: str
    reason: str | None
    lines: list[str]

    @property
    def where(self) -> str:
        return f'{self.path.relative_to(ROOT)}:{self.first + 1}'

    @property
    def is_ours(self) -> bool:
        """Whether a command of nfv-sched is in it."""
        return any(_OURS.search(line) for line in self.lines
                   if line.startswith('$'))

    def commands(self) -> list[Command]:
        commands: list[Command] = []
        continued = False
        for line in self.lines:
            if continued:
                commands[-1].lines.append(line)
            elif line.startswith('$ '):
                commands.append(Command([line], []))
            else:
                commands[-1].output.append(line)
                continue
            continued = line.endswith('\\')
        for command in commands:
            _strip(command.output)
        return commands


def pages() -> list[pathlib.Path]:
    return [ROOT / 'README.md',
            *sorted((ROOT / 'doc' / 'source').rglob('*.rst'))]


def blocks(path: pathlib.Path) -> Iterator[Block]:
    lines = path.read_text(encoding='utf-8').splitlines()
    before = ''
    for number, line in enumerate(lines):
        if start := _DIRECTIVE.fullmatch(line) or _FENCE.fullmatch(line):
            indent, first, end = _extent(lines, number, start)
            reason = _NOT_RUN.fullmatch(before)
            yield Block(path, first, end, indent,
                        reason and reason['reason'],
                        [text.removeprefix(indent).rstrip()
                         for text in lines[first:end]])
        if line.strip():
            before = line


def _extent(lines: list[str], number: int,
            start: re.Match[str]) -> tuple[str, int, int]:
    """Return indentation, first line and end of the block that starts."""
    first = number + 1
    if start.re is _FENCE:
        return start[1], first, lines.index(f'{start[1]}```', first)
    indent = f'{start[1]}   '
    while not lines[first]:
        first += 1
    end = first
    while end < len(lines) and (
            not lines[end] or lines[end].startswith(indent)):
        end += 1
    while not lines[end - 1]:
        end -= 1
    return indent, first, end


def rewrite(path: pathlib.Path, run: Callable[[str], list[str]]) -> None:
    """Write what the commands of a page print into the page."""
    lines = path.read_text(encoding='utf-8').splitlines()
    for block in reversed(list(blocks(path))):
        if block.is_ours and block.reason is None:
            lines[block.first:block.end] = [
                f'{block.indent}{line}'.rstrip()
                for command in block.commands()
                for line in (*command.lines,
                             *command.shortened(run(command.text)))]
    path.write_text(''.join(f'{line}\n' for line in lines), encoding='utf-8')


def draw(path: pathlib.Path, lines: list[str]) -> None:
    """Write a picture of a terminal that shows these lines."""
    console = rich_console.Console(
        record=True, file=io.StringIO(), width=max(map(len, lines)))
    for line in lines:
        console.print(rich_text.Text(
            line, style='bold' if line.startswith('$ ') else ''))
    svg = console.export_svg(title='nfv-sched', unique_id='session')
    # Nothing is fetched from the network.
    path.write_text(re.sub(r'@font-face *{.*?}\s*', '', svg, flags=re.S),
                    encoding='utf-8')


def drawn(path: pathlib.Path) -> list[str]:
    """Return the lines that a picture of a terminal shows, without blanks."""
    rows: dict[str, str] = {}
    for text in ElementTree.parse(path).iter(
            '{http://www.w3.org/2000/svg}text'):
        if text.get('clip-path') is not None:
            row = text.get('y', '')
            rows[row] = rows.get(row, '') + (text.text or '')
    lines = [row.replace('\xa0', ' ').rstrip() for row in rows.values()]
    return [line for line in lines if line]


def _strip(lines: list[str]) -> None:
    while lines and not lines[-1]:
        lines.pop()


def _steady(lines: list[str]) -> list[str]:
    return [_SECONDS.sub('in N s', line) for line in lines]


def _literal(text: str) -> str:
    return re.sub(r'([*?[])', r'[\1]', text)
