# SPDX-License-Identifier: Apache-2.0
"""Run the command ``nfv-sched-status ledger probe``."""

import argparse
from collections.abc import Callable
from collections.abc import Sequence
import typing as ty

from oslo_config import cfg

if ty.TYPE_CHECKING:
    from nfv_sched.ledger import probe

DESCRIPTION = """\
Test whether Placement grants exactly what the ledger has.

Limits of ports and rules hold only as far as Placement keeps them when many
claims come at the same moment. This makes a resource provider of its own that
no server can use, lets more claims come at once than it has capacity for,
several times, and says how many were granted.

It reads the nova.conf of nova-scheduler, of which it needs [placement].
Whatever it makes in Placement is removed in the end; what a probe that was
killed has left behind is removed by the next one, after ten minutes.
"""

EXIT_CODES = """\
exit codes:
  0    never more was granted than there was, and never less
  1    that could not be found out
  3    more was granted than there was
  4    claims were refused while there was capacity for them
"""

_TOO_MUCH = """\
WRONG: Placement granted more than there was. Where the Placement API runs, set
in placement.conf, and restart it:

[placement]
allocation_conflict_retry_count = 1"""


def add_options(parser: argparse.ArgumentParser) -> None:
    for name, default, what in (
        ('--capacity', 7, 'how many claims there is capacity for'),
        ('--claims', 12, 'how many claims come at once'),
        ('--bursts', 3, 'how many times'),
    ):
        parser.add_argument(
            name, type=_positive_number, default=default,
            metavar='NUMBER', help=f'{what} (default: {default})')


def _positive_number(value: str) -> int:
    number = int(value)
    if not 1 <= number <= 1000:
        raise argparse.ArgumentTypeError('a number from 1 to 1000 is needed')
    return number


def run(conf, options: ty.Any, write: Callable[[str], None],
        fail: Callable[[ty.Any], int]) -> int:
    """Probe Placement, write the results, and return the exit code.

    :param options: values of the options of :func:`add_options`; more claims
        than the capacity
    :param fail: function that writes an error and returns an exit code
    """
    # Imported here so that --help is quick.
    from nfv_sched.ledger import client
    from nfv_sched.ledger import probe
    try:
        with probe.Probe(conf, options.capacity,
                         options.claims) as ledger_probe:
            bursts = []
            for _ in range(options.bursts):
                bursts.append(ledger_probe.burst())
                write(_burst_text(bursts[-1], options))
    except (cfg.Error, probe.ProbeError, client.PlacementError) as exc:
        return fail(exc)
    return _conclude(bursts, options.capacity, write)


def _burst_text(burst: 'probe.Burst', options: ty.Any) -> str:
    return (f'{options.claims} claims at once, capacity for '
            f'{options.capacity}: '
            f'{burst.granted} granted, {burst.conflicts} met a conflict, '
            f'{burst.refused} refused; after the conflicts were tried again '
            f'{burst.total} granted')


def _conclude(bursts: Sequence['probe.Burst'], capacity: int,
              write: Callable[[str], None]) -> int:
    if any(burst.total > capacity for burst in bursts):
        write(_TOO_MUCH)
        return 3
    if any(burst.total < capacity for burst in bursts):
        write('WRONG: claims were refused while there was capacity for them. '
              'Please report this.')
        return 4
    if not any(burst.conflicts for burst in bursts):
        write('RIGHT, as far as this shows: no claims met in Placement. Try '
              'more of them, with --claims and --bursts.')
    else:
        write('RIGHT: no more was granted than there was, and no less.')
    return 0
