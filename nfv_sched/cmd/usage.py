# SPDX-License-Identifier: Apache-2.0
"""The help of the commands that oslo.config reads the arguments of."""

from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log

_ASKED = ('-h', '--help')


def show_if_asked(argv: Sequence[str], prog: str, description: str,
                  options: Sequence[cfg.Opt]) -> None:
    """Print the help and exit, if that is what is asked for.

    It needs no option of Nova, which takes seconds to import.

    :param argv: arguments, without the name of the program
    :param prog: name of the program
    :param description: what the program does
    :param options: of the program, besides those of oslo.config and oslo.log
    """
    if any(argument in _ASKED for argument in argv):
        conf = cfg.ConfigOpts()
        log.register_options(conf)
        conf.register_cli_opts(options)
        conf(list(argv), project='nova', prog=prog, description=description)
