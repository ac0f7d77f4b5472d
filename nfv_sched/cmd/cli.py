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

"""The command ``nfv-sched``; its subcommands are entry points.

Others may add subcommands in the entry-point group ``nfv_sched.cli``.
"""

import argparse
from collections.abc import Sequence
import importlib.metadata
import logging
import os
import sys

from cliff import app
from cliff import command
from cliff import commandmanager
from cliff import lister

NAMESPACE = 'nfv_sched.cli'

_DESCRIPTION = """\
Placement of network functions on OpenStack Nova.

"nfv-sched simulate" builds a cloud from a YAML file and lets Nova's own
scheduler and claims place servers in it, with the filters and weighers of
nfv-sched. Start with: nfv-sched simulate --example carrier-grade
"""


def version() -> str:
    """The version of the installed package."""
    try:
        return importlib.metadata.version('nfv-sched')
    except importlib.metadata.PackageNotFoundError:
        return 'not installed'


class NFVSched(app.App):
    """The cliff application."""

    NAME = 'nfv-sched'

    def __init__(self):
        super().__init__(
            description=_DESCRIPTION, version=version(),
            command_manager=commandmanager.CommandManager(NAMESPACE),
            deferred_help=True)

    def build_option_parser(self, description, version,
                            argparse_kwargs=None):
        """The parser of the options before the subcommand."""
        return super().build_option_parser(
            description, version,
            {'prog': self.NAME, **(argparse_kwargs or {})})

    def configure_logging(self):
        """Nova is quiet unless asked: -v for its notes, -vv for all."""
        super().configure_logging()
        # cliff lets everything through to its handlers, which costs Nova
        # time to write what nobody reads.
        if self.options.debug or self.options.verbose_level > 2:
            level = logging.DEBUG
        else:
            level = {0: logging.ERROR, 1: logging.WARNING}.get(
                self.options.verbose_level, logging.INFO)
        logging.getLogger('').setLevel(level)
        if self.options.verbose_level <= 1 and not self.options.debug:
            logging.getLogger('nova').setLevel(logging.CRITICAL)
        for handler in logging.getLogger('').handlers:
            if self.options.debug:
                handler.setLevel(logging.DEBUG)


class _Subcommand:
    """What subcommands have in common.

    Its docstring and its epilog are shown by ``--help`` as they are laid out.
    """

    #: What is shown after the options.
    epilog: str

    def get_epilog(self) -> str:
        """The epilog, without a line about where the command comes from."""
        return self.epilog

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The parser; subclasses add their options."""
        parser = super().get_parser(prog_name)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        return parser


class Command(_Subcommand, command.Command):
    """A subcommand that prints what it likes."""


class Lister(_Subcommand, lister.Lister):
    """A subcommand that shows a table."""


def discard_output() -> None:
    """Write nothing more: whoever read it, such as head, has seen enough."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    :param argv: arguments; those of the process if None
    :returns: exit code
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv:
        argv = ['--help']
    try:
        code = NFVSched().run(argv)
        sys.stdout.flush()
        return code
    except SystemExit as e:
        if e.code is None:
            return 0
        return e.code if isinstance(e.code, int) else 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        discard_output()
        return 0


if __name__ == '__main__':
    sys.exit(main())
