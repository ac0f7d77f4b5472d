# SPDX-License-Identifier: Apache-2.0
"""Print what bash, fish and zsh need to complete command lines."""

import argparse
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import itertools
import re

from cliff import command
from cliff import complete

#: Metavars of options and arguments that are files.
_FILES = re.compile(r'CLOUD|DIR|FILE|PATH')

_HELP_WIDTH = 60

_FISH = """\
# The words before the cursor that are no options, without the program.
function __{function}_words
    set -l tokens (commandline -opc)
    string match --invert -- '-*' $tokens[2..-1]
end

# True at the word that follows those of the argument.
function __{function}_follows
    set -l words (__{function}_words)
    test "$words" = "$argv[1]"
end

# True after the words of the argument.
function __{function}_after
    set -l words (__{function}_words)
    string match --quiet -- "$argv[1] *" "$words "
end

complete -c {name} -f
"""

_ZSH = """\
#compdef {name}
_{function}() {{
    local command='' next
    local -i depth=1
    local -a next_words
    while (( depth < CURRENT - 1 )); do
        next="${{command:+$command }}${{words[depth + 1]}}"
        case $next in
            ({names}) command=$next; depth+=1 ;;
            (*) break ;;
        esac
    done
    case $command in
{cases}
    esac
}}
if [[ $funcstack[1] == _{function} ]]; then
    _{function} "$@"
else
    compdef _{function} {name}
fi
"""


@dataclasses.dataclass(frozen=True, slots=True)
class _Command:
    """A command, and what may follow it.

    :ivar name: its words; empty for the program itself
    :ivar next_words: what may follow -> a line of help, or ''
    """

    name: str
    next_words: dict[str, str]
    actions: Sequence[argparse.Action]


def _visible_actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the options and arguments that ``--help`` shows."""
    return [action for action in parser._actions
            if action.help != argparse.SUPPRESS]


def _summary(action: argparse.Action) -> str:
    """Return the help of an option in a short line."""
    text = ' '.join((action.help or '').replace('%%', '%').split())
    text = re.split(r' \(|[;:.](?: |$)', text)[0]
    if len(text) > _HELP_WIDTH:
        text = text[:_HELP_WIDTH].rpartition(' ')[0] + ' ...'
    return text


def _metavar(action: argparse.Action) -> str:
    """Return the name of the value of an option or argument."""
    metavar = action.metavar or action.dest.upper()
    return metavar if isinstance(metavar, str) else metavar[0]


def _choices(action: argparse.Action) -> list[str]:
    return list(map(str, action.choices or ()))


def _quoted(text: str) -> str:
    """Return a text as one word of a shell, also of fish."""
    return "'" + re.sub(r"['\\]", r'\\\g<0>', text) + "'"


def _fish(name: str, commands: Iterable[_Command]) -> Iterable[str]:
    """Return the lines of a completion for fish."""
    function = re.sub(r'\W', '_', name)
    yield _FISH.format(name=name, function=function)
    for each in commands:
        condition = _quoted(f'__{function}_follows {_quoted(each.name)}')
        for word, help_text in each.next_words.items():
            yield (f'complete -c {name} -n {condition} -a {_quoted(word)} '
                   f'-d {_quoted(help_text)}\n')
        condition = _quoted(f'__{function}_after {_quoted(each.name)}')
        for action in each.actions:
            line = f'complete -c {name} -n {condition}'
            for option in action.option_strings:
                line += (f' -l {option[2:]}' if option.startswith('--')
                         else f' -s {option[1:]}')
            if action.option_strings:
                line += f' -d {_quoted(_summary(action))}'
            if action.nargs != 0:
                # The value of an option must follow; a file may, or not.
                required = bool(action.option_strings)
                if choices := _choices(action):
                    line += ' -x' * required + (
                        f' -a {_quoted(" ".join(choices))}')
                elif _FILES.search(_metavar(action)):
                    line += ' -r' * required + ' -F'
                elif required:
                    line += ' -x'
                else:
                    continue
            yield f'{line}\n'


def _zsh_value(action: argparse.Action) -> str:
    """Return the message and the action of a value for _arguments."""
    message = re.sub(r'[:\\]', r'\\\g<0>', _metavar(action))
    if choices := _choices(action):
        return f':{message}:({" ".join(choices)})'
    return f':{message}:' + (
        '_files' if _FILES.search(_metavar(action)) else ' ')


def _zsh_specs(action: argparse.Action) -> Iterable[str]:
    """Return what _arguments wants for an option or argument."""
    if not action.option_strings:
        # What a command may be given once may come after any option.
        yield f'*{_zsh_value(action)}'
        return
    summary = re.sub(r'[\[\]:\\]', r'\\\g<0>', _summary(action))
    value = '' if action.nargs == 0 else _zsh_value(action)
    repeated = isinstance(action, argparse._AppendAction)
    excluded = '*' if repeated else f'({" ".join(action.option_strings)})'
    for option in action.option_strings:
        yield f'{excluded}{option}[{summary}]{value}'


def _zsh(name: str, commands: Iterable[_Command]) -> Iterable[str]:
    """Return the text of a completion for zsh."""
    cases = []
    names = []
    for each in commands:
        if each.name:
            names.append(_quoted_zsh(each.name))
        lines = []
        if each.next_words:
            words = ' '.join(
                _quoted_zsh(f'{word}:{help_text}' if help_text else word)
                for word, help_text in each.next_words.items())
            lines.append(f'next_words=({words})')
            lines.append("_describe -t commands 'command' next_words")
        if each.actions:
            lines.append('shift $(( depth - 1 )) words')
            lines.append('CURRENT=$(( CURRENT - depth + 1 ))')
            specs = itertools.chain.from_iterable(
                map(_zsh_specs, each.actions))
            lines.append('_arguments -s \\\n                ' +
                         ' \\\n                '.join(
                             map(_quoted_zsh, specs)))
        body = '\n            '.join(lines)
        cases.append(f'        ({_quoted_zsh(each.name)})\n'
                     f'            {body} ;;')
    yield _ZSH.format(
        name=name, function=re.sub(r'\W', '_', name),
        names='|'.join(names), cases='\n'.join(cases))


def _quoted_zsh(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


#: Shell -> how its completion is written.
SHELLS: dict[str, Callable[[str, Iterable[_Command]], Iterable[str]]] = {
    'fish': _fish,
    'zsh': _zsh,
}

#: Shells that cliff knows; "none" prints the data only.
CLIFF_SHELLS: dict[str, type[complete.CompleteShellBase]] = {
    'bash': complete.CompleteBash,
    'none': complete.CompleteNoCode,
}


class PrintCompletion(command.Command):
    """Print a completion function for bash, fish or zsh"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--name', metavar='NAME',
            help='command to complete (default: this one)')
        parser.add_argument(
            '--shell', choices=sorted({**SHELLS, **CLIFF_SHELLS}),
            default='bash',
            help='shell to print it for; none prints the words only '
                 '(default: bash)')
        return parser

    def _subcommands(self) -> dict[str, command.Command]:
        """Return the commands that are not deprecated, by name."""
        subcommands = {
            name: entry_point.load()(self.app, None)
            for name, entry_point in self.app.command_manager}
        return {name: subcommand
                for name, subcommand in sorted(subcommands.items())
                if not subcommand.deprecated}

    def _commands(self) -> list[_Command]:
        """Return the program, and each command and part of one."""
        commands = {'': _Command('', {}, ())}
        for name, subcommand in self._subcommands().items():
            words = name.split()
            for count, word in enumerate(words):
                part = ' '.join(words[:count])
                commands.setdefault(part, _Command(part, {}, ()))
                is_last = count == len(words) - 1
                summary = subcommand.get_description().split(
                    '\n')[0].rstrip('.') if is_last else ''
                commands[part].next_words.setdefault(word, summary)
            previous = commands.get(name, _Command(name, {}, ()))
            commands[name] = dataclasses.replace(
                previous,
                actions=_visible_actions(subcommand.get_parser(name)))
        return list(commands.values())

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Print the function; called by cliff."""
        name = parsed_args.name or self.app.NAME
        if parsed_args.shell in SHELLS:
            for text in SHELLS[parsed_args.shell](name, self._commands()):
                self.app.stdout.write(text)
            return 0
        words = complete.CompleteDictionary()
        for subcommand_name, subcommand in self._subcommands().items():
            words.add_command(
                subcommand_name.split(),
                _visible_actions(subcommand.get_parser(subcommand_name)))
        CLIFF_SHELLS[parsed_args.shell](name, self.app.stdout).write(
            words.get_commands(), words.get_data())
        return 0
