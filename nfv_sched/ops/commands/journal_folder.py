# SPDX-License-Identifier: Apache-2.0
"""Find the decision journal."""

import argparse

from nfv_sched.ops.cli import base
from nfv_sched.ops.commands import source


def configured(parsed_args: argparse.Namespace) -> str:
    """Return the directory of the journal in the configuration.

    :param parsed_args: arguments of a parser with the configuration options
    :raises source.CloudUnreadError: if none is set, or the configuration
        cannot be read
    """
    source.configure(base.configuration(parsed_args), databases=False)
    path = directory()
    if not path:
        raise source.CloudUnreadError(
            'there is no journal: [nfv_sched] decision_journal is not set')
    return path


def directory() -> str | None:
    """Return the journal's directory in the configuration read, or None."""
    from nfv_sched.base import conf
    from nfv_sched.nova import database
    conf.register_opts(database.CONF)
    return database.CONF.nfv_sched.decision_journal
