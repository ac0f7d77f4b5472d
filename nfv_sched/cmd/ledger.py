# SPDX-License-Identifier: Apache-2.0
"""Run the command ``nfv-sched-ledger``: a service, or one round."""

from collections.abc import Callable, Sequence
import contextlib
import multiprocessing
import sys

from oslo_config import cfg
from oslo_log import log as logging

from nfv_sched.base import quiet
from nfv_sched.base import strings
from nfv_sched.cmd import usage
from nfv_sched.nova import concurrency

CONF = cfg.CONF
LOG = logging.getLogger(__name__)

PROG = 'nfv-sched-ledger'

_DESCRIPTION = """\
Keeps the ledger of nfv-sched in Placement: a resource provider below that of
each compute node, with an inventory of vSwitch ports and one of security-group
rules. The totals are the limits of [nfv_sched]; what Neutron reports on a host
and no server has allocated is reserved. Reads the nova.conf of nova-scheduler
with [api_database], [placement] and [neutron]. Without --once it runs until it
is stopped, and SIGHUP makes it read its configuration again. Several may run.
"""

_CLI_OPTS = [
    cfg.BoolOpt(
        'once', default=False,
        help='Do one round, say what was done for each host, and exit: 0 if '
             'everything is up to date, 1 if anything failed.'),
    cfg.BoolOpt(
        'dry-run', default=False,
        help='With --once: say what would be done, and change nothing.'),
]

_HEADERS = ('host', 'action', 'ports', 'reserved', 'allocated',
            'rules', 'reserved', 'allocated', 'note')


def table(round_report, dry_run: bool = False) -> str:
    """Return a ``publisher.RoundReport`` as a table in plain text."""
    from nfv_sched.limits import names
    rows = [_HEADERS]
    for report in round_report.hosts:
        figures = []
        for name in (names.PORTS, names.RULES):
            if (account := report.accounts.get(name)) is None:
                figures += ['', '', '']
                continue
            inventory = account.inventory()
            unlimited = inventory.total >= names.UNLIMITED
            figures += ['unlimited' if unlimited else str(inventory.total),
                        str(inventory.reserved), str(account.allocated)]
        rows.append(tuple(map(strings.line, (
            report.host, report.action.value, *figures, report.note))))
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ['  '.join(
        cell.rjust(width) if 2 <= index <= 7 else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(row, widths))).rstrip()
        for row in rows]
    lines += [f'error: {strings.line(failure)}'
              for failure in round_report.failures]
    if dry_run:
        lines.append('Nothing was changed.')
    return '\n'.join(lines)


def _print_error(error: Exception) -> None:
    print(f'{PROG}: {strings.visible(strings.mask_secrets(str(error)))}',
          file=sys.stderr)


def once(dry_run: bool) -> int:
    from nfv_sched.ledger import publisher
    try:
        with contextlib.closing(publisher.Publisher()) as worker:
            round_report = worker.round(dry_run)
    except publisher.RoundError as exc:
        _print_error(exc)
        return 1
    print(table(round_report, dry_run))
    return 1 if round_report.failed else 0


def _restart(restart: Callable[[], None]) -> Callable[[], None]:
    """Return what SIGHUP calls with eventlet, in the process of the service.

    A wrong nova.conf would otherwise end it.
    """
    def restart_if_possible():
        # Before it logs all options, oslo.service reads them.
        CONF.set_override('log_options', False)
        try:
            restart()
        except Exception as exc:
            LOG.error('The configuration is not read again: %s', exc)
    return restart_if_possible


def serve() -> int:
    from oslo_service import service

    from nfv_sched.ledger import publisher

    class Ledger(service.Service):
        """The service; with native threads it is started after a fork."""

        def __init__(self):
            super().__init__(threads=1)
            self._keeper = publisher.Keeper()

        def start(self):
            super().start()
            # Without a fork SIGHUP stops it, and starts it again.
            self._keeper.resume()
            self.tg.add_thread(self._keeper.run)

        def stop(self, graceful=True):
            self._keeper.stop()
            super().stop(graceful=True)

    # NOTE: Nova's configuration object, which the worker gets, cannot be
    # pickled, so it must be forked.  That is no longer the default of Python
    # 3.14, and oslo.service forks by itself since 4.5 only.
    multiprocessing.set_start_method('fork', force=True)
    launcher = service.launch(
        publisher.CONF, Ledger(), workers=1, restart_method='reload')
    if concurrency.is_patched():
        launcher.restart = _restart(launcher.restart)
    return launcher.wait() or 0


@quiet.warnings_ignored()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; ``argv`` None stands for that of the process."""
    argv = list(sys.argv[1:] if argv is None else argv)
    usage.show_if_asked(argv, PROG, _DESCRIPTION, _CLI_OPTS)
    concurrency.service()
    from nfv_sched.nova import database
    from nfv_sched.nova import scheduler

    conf = scheduler.CONF
    conf.register_cli_opts(_CLI_OPTS)
    try:
        database.parse_configuration(argv, PROG, _DESCRIPTION)
        database.prepare_database()
        if conf.once:
            # By default oslo.log would write into the table.
            conf.set_default('use_stderr', True)
        logging.setup(conf, PROG)
        if conf.dry_run and not conf.once:
            print(f'{PROG}: --dry-run needs --once', file=sys.stderr)
            return 2
        return once(conf.dry_run) if conf.once else serve()
    except cfg.Error as exc:
        # Some values are only checked when they are used.
        _print_error(exc)
        return 2


if __name__ == '__main__':
    sys.exit(main())
