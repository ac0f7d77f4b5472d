# SPDX-License-Identifier: Apache-2.0
"""Print the help of commands whose arguments oslo.config reads."""

from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log


def show_if_asked(argv: Sequence[str], prog: str, description: str,
                  options: Sequence[cfg.Opt]) -> None:
    # Nova is not imported for this, as that takes seconds.
    if not {'-h', '--help'}.isdisjoint(argv):
        conf = cfg.ConfigOpts()
        log.register_options(conf)
        conf.register_cli_opts(options)
        conf(list(argv), project='nova', prog=prog, description=description)
