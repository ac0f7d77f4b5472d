# SPDX-License-Identifier: Apache-2.0
"""Run the command ``nfv-sched-status``."""

import argparse
from collections.abc import Callable, Sequence
import logging
import sys

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nfv_sched.base import quiet
from nfv_sched.base import strings
from nfv_sched.checks import findings
from nfv_sched.cmd import usage
from nfv_sched.nova import concurrency

PROG = 'nfv-sched-status'

#: Seconds that one request to a service may take.
TIMEOUT = 10.0

#: Exit code if there is no result.
UNUSABLE = 255

_DESCRIPTION = """\
Says whether nfv-sched is installed and configured so that it works. Run it
where nova-scheduler runs, with its nova.conf, after installing or upgrading
nfv-sched or Nova and after changing the configuration:
"nfv-sched-status upgrade check". It changes nothing. "nfv-sched-status ledger
probe" tests Placement with a resource provider of its own, which it removes.
"""

_EPILOG = """\
exit codes:
  0    all is well
  1    something should be looked at
  2    something does not work
  255  there is no result, for instance because nova.conf cannot be read
"""

_PROBE_DESCRIPTION = """\
Test whether Placement grants exactly what the ledger has.

Limits of ports and rules hold only as far as Placement keeps them when many
claims come at the same moment. This makes a resource provider of its own that
no server can use, lets more claims come at once than it has capacity for,
several times, and says how many were granted.

It reads the nova.conf of nova-scheduler, of which it needs [placement].
Whatever it makes in Placement is removed in the end; what a probe that was
killed has left behind is removed by the next one, after ten minutes.
"""

_TOO_MUCH = """\
WRONG: Placement granted more than there was. Where the Placement API runs, set
in placement.conf, and restart it:

[placement]
allocation_conflict_retry_count = 1"""


_LEDGER_EPILOG = f"""\
examples:
  {PROG} ledger probe
  {PROG} ledger probe --claims 40 --bursts 10
  {PROG} --config-file /etc/nova/nova.conf ledger probe

exit codes:
  0    never more was granted than there was, and never less
  1    that could not be found out
  3    more was granted than there was
  4    claims were refused while there was capacity for them
  255  there is no result, for instance because nova.conf cannot be read
"""


class Checks(upgradecheck.UpgradeCommands):
    """The upgrade checks, in the order in which they are shown."""

    def __init__(self, conf):
        # Imported late: they import Nova, which would delay --help by seconds.
        from nfv_sched.checks import computes
        from nfv_sched.checks import scheduler
        from nfv_sched.checks import services
        nodes = computes.Computes()
        self._upgrade_checks = tuple(
            (name, _never_raising(check)) for name, check in (
                ('Options of [nfv_sched]', lambda: scheduler.options(conf)),
                ('Nova and libraries', scheduler.nova_interfaces),
                ('Filters', lambda: scheduler.filters(conf)),
                ('Weighers', lambda: scheduler.weighers(conf)),
                ('Extra-spec validators', scheduler.validators),
                ('Flavors', computes.flavors),
                ('Attempts', lambda: computes.retries(conf)),
                ('Labels of compute nodes',
                 lambda: computes.labels(conf, nodes)),
                ('Pinned CPUs in Placement',
                 lambda: computes.pinning(conf, nodes)),
                ('Aggregate metadata', lambda: computes.aggregates(nodes)),
                ('Neutron', lambda: services.neutron(conf)),
                ('Placement', lambda: services.placement(conf)),
                ('Ledger', lambda: services.ledger(conf)),
            ))

    def _get_details(self, upgrade_check_result):
        """Return the details of a result, each line wrapped separately."""
        lines = strings.visible(upgrade_check_result.details or '').split('\n')
        return '\n'.join(
            super(Checks, self)._get_details(upgradecheck.Result(
                upgrade_check_result.code, line)) for line in lines)


def _never_raising(
    check: Callable[[], upgradecheck.Result],
) -> Callable[[upgradecheck.UpgradeCommands], upgradecheck.Result]:
    """Wrap a check so that an exception becomes its result: a failure."""
    def run(_commands):
        try:
            return check()
        except findings.UnreadError as exc:
            return findings.warning(str(exc))
        except cfg.Error as exc:
            return findings.failure(
                f'{strings.mask_secrets(str(exc))}. Correct nova.conf.')
        except Exception as exc:
            return findings.failure(
                f'The check itself failed: {type(exc).__name__}: '
                f'{strings.mask_secrets(str(exc))}. Please report this.')
    return run


def _add_parsers(subparsers) -> None:
    upgrade = subparsers.add_parser(
        'upgrade', help='checks to run before and after an upgrade',
        description='Checks to run before and after an upgrade.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    upgrade.set_defaults(action_fn=_check)
    upgrade.add_argument(
        'check', choices=['check'], help='run all checks and show the results')
    upgrade.add_argument(
        '--json', action='store_true',
        help='show the results as JSON (default: as a table)')
    ledger = subparsers.add_parser(
        'ledger', help='test of the ledger in Placement',
        description=_PROBE_DESCRIPTION, epilog=_LEDGER_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    ledger.set_defaults(action_fn=_probe)
    ledger.add_argument(
        'probe', choices=['probe'], help='let claims come at the same moment')
    for name, default, what in (
        ('--capacity', 7, 'how many claims there is capacity for'),
        ('--claims', 12, 'how many claims come at once'),
        ('--bursts', 3, 'how many times'),
    ):
        ledger.add_argument(
            name, type=_positive_number, default=default,
            metavar='NUMBER', help=f'{what} (default: {default})')


def _positive_number(value: str) -> int:
    number = int(value)
    if not 1 <= number <= 1000:
        raise argparse.ArgumentTypeError('a number from 1 to 1000 is needed')
    return number


_CLI_OPTS = [
    cfg.SubCommandOpt(
        'command', title='commands', handler=_add_parsers,
        help='"upgrade check" runs all checks, "ledger probe" tests whether '
             'Placement grants exactly what the ledger has'),
]


def bound(conf) -> None:
    for group, option in (('neutron', 'timeout'), ('placement', 'timeout'),
                          ('nfv_sched', 'neutron_request_timeout')):
        try:
            value = conf[group][option]
        except cfg.Error:
            continue  # a check reports it
        conf.set_override(option, min(value or TIMEOUT, TIMEOUT), group)


def _check() -> int:
    from nfv_sched.nova import database
    from nfv_sched.nova import scheduler as nova_scheduler
    conf = nova_scheduler.CONF
    bound(conf)
    database.limit_waiting()
    try:
        database.prepare_database()
    except Exception as exc:
        print(f'{PROG}: nova.conf cannot be used: '
              f'{strings.mask_secrets(str(exc))}', file=sys.stderr)
        return UNUSABLE
    return Checks(conf).check()


def _probe() -> int:
    from nfv_sched.ledger import client
    from nfv_sched.ledger import probe
    from nfv_sched.nova import scheduler as nova_scheduler
    options = nova_scheduler.CONF.command
    if options.claims <= options.capacity:
        _print_error('--claims must be more than --capacity')
        return UNUSABLE
    bursts = []
    try:
        with probe.Probe(nova_scheduler.CONF, options.capacity,
                         options.claims) as ledger_probe:
            for _ in range(options.bursts):
                burst = ledger_probe.burst()
                bursts.append(burst)
                print(f'{options.claims} claims at once, capacity for '
                      f'{options.capacity}: {burst.granted} granted, '
                      f'{burst.conflicts} met a conflict, {burst.refused} '
                      'refused; after the conflicts were tried again '
                      f'{burst.total} granted')
    except (cfg.Error, probe.ProbeError, client.PlacementError) as exc:
        return _print_error(exc)
    if any(burst.total > options.capacity for burst in bursts):
        print(_TOO_MUCH)
        return 3
    if any(burst.total < options.capacity for burst in bursts):
        print('WRONG: claims were refused while there was capacity for them. '
              'Please report this.')
        return 4
    if not any(burst.conflicts for burst in bursts):
        print('RIGHT, as far as this shows: no claims met in Placement. Try '
              'more of them, with --claims and --bursts.')
    else:
        print('RIGHT: no more was granted than there was, and no less.')
    return 0


def _print_error(error: object) -> int:
    print(f'{PROG}: {strings.one_line(error)}', file=sys.stderr)
    return 1


@quiet.warnings_ignored()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; ``argv`` None stands for that of the process."""
    # Errors are in the results, not in a log.
    logging.getLogger().addHandler(logging.NullHandler())
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        usage.show_if_asked(argv, PROG, _DESCRIPTION, _CLI_OPTS)
    except SystemExit:
        return 0
    concurrency.native_threads()
    from nfv_sched.nova import database
    from nfv_sched.nova import scheduler as nova_scheduler

    conf = nova_scheduler.CONF
    conf.register_cli_opts(_CLI_OPTS)
    try:
        database.parse_configuration(argv, PROG, _DESCRIPTION)
    except cfg.Error as exc:
        print(f'{PROG}: {strings.mask_secrets(str(exc))}', file=sys.stderr)
        return UNUSABLE
    except SystemExit as exc:
        # Its exit code for wrong arguments is that of a failed check.
        return UNUSABLE if exc.code else 0
    upgradecheck.CONF = conf  # has --json
    try:
        return upgradecheck.run(conf)
    except KeyboardInterrupt:
        return 130


if __name__ == '__main__':
    sys.exit(main())
