# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched ledger probe``."""

import argparse

from oslo_config import cfg

from nfv_sched.ops.cli import base
from nfv_sched.ops.cloud import source

_EPILOG = """\
Reads the nova.conf of nova-scheduler, of which it needs [placement]. Whatever
it makes in Placement is removed in the end; what a probe that was killed has
left behind is removed by the next one, after ten minutes.

examples:
  nfv-sched ledger probe
  nfv-sched ledger probe --claims 40 --bursts 10
  nfv-sched ledger probe --config-file /etc/nova/nova.conf

exit codes:
  0    never more was granted than there was, and never less
  1    that could not be found out
  3    more was granted than there was
  4    claims were refused while there was room for them
"""

_WRONG = """\
WRONG: Placement granted more than there was. Where the Placement API runs, set
in placement.conf, and restart it:

[placement]
allocation_conflict_retry_count = 1
"""


class ProbeLedger(source.Telling, base.Command):
    """Test whether Placement grants exactly what the ledger has.

    Limits of ports and rules that are kept in Placement ([nfv_sched] ledger =
    placement) hold only as far as Placement keeps them when many claims come
    at the same moment. This makes a resource provider of its own that no
    server can use, lets more claims come at once than it has room for, several
    times, and says how many were granted.
    """

    epilog = _EPILOG

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        for name, default, what in (
            ('room', 7, 'how many claims there is room for'),
            ('claims', 12, 'how many claims come at once'),
            ('bursts', 3, 'how many times'),
        ):
            parser.add_argument(
                f'--{name}', type=_positive, default=default,
                metavar='NUMBER', help=f'{what} (default: {default})')
        base.add_configuration(parser)
        return parser

    def take_action(self, parsed_args) -> int:
        if parsed_args.claims <= parsed_args.room:
            return self.tell('--claims must be more than --room')
        # Imported here so that --help does not wait for Nova.
        from nfv_sched.ledger import client
        from nfv_sched.nova import scheduler
        from nfv_sched.ops.probe import probe
        source.configure(base.configuration(parsed_args), databases=False)
        try:
            with probe.Probe(scheduler.CONF, parsed_args.room,
                             parsed_args.claims) as ledger_probe:
                bursts = [self._burst(ledger_probe, parsed_args)
                          for _ in range(parsed_args.bursts)]
        except (cfg.Error, probe.ProbeError,
                client.PlacementError) as exc:
            return self.tell(exc)
        return self._conclude(bursts, parsed_args.room)

    def _burst(self, ledger_probe, parsed_args):
        burst = ledger_probe.burst()
        self._print(
            f'{parsed_args.claims} claims at once, room for '
            f'{parsed_args.room}: {burst.granted} granted, {burst.conflicts} '
            f'met a conflict, {burst.refused} refused; after the conflicts '
            f'were tried again {burst.total} granted')
        return burst

    def _conclude(self, bursts, room: int) -> int:
        if any(burst.total > room for burst in bursts):
            self._print(_WRONG.rstrip())
            return 3
        if any(burst.total < room for burst in bursts):
            self._print('WRONG: claims were refused while there was room for '
                        'them. Please report this.')
            return 4
        if not any(burst.conflicts for burst in bursts):
            self._print(
                'RIGHT, as far as this shows: no claims met in Placement. Try '
                'more of them, with --claims and --bursts.')
        else:
            self._print('RIGHT: no more was granted than there was, and no '
                        'less.')
        return 0

    def _print(self, line: str) -> None:
        self.app.stdout.write(f'{line}\n')


def _positive(value: str) -> int:
    number = int(value)
    if not 1 <= number <= 1000:
        raise argparse.ArgumentTypeError('a number from 1 to 1000 is needed')
    return number
