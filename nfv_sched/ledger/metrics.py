# SPDX-License-Identifier: Apache-2.0
"""Count what nfv-sched-ledger does, in a text file for Prometheus."""

import collections
import os
import threading

#: HTTP status -> number of writes that Placement refused; change it with LOCK.
REFUSED: collections.Counter[int] = collections.Counter()
LOCK = threading.Lock()
TEXT = """\
# HELP nfv_sched_ledger_timestamp_seconds Of the last round without a failure.
# TYPE nfv_sched_ledger_timestamp_seconds gauge
nfv_sched_ledger_timestamp_seconds {}
# HELP nfv_sched_ledger_refused_total Writes refused by Placement, by status.
# TYPE nfv_sched_ledger_refused_total counter
{}"""


def write(path: str, began: float) -> None:
    with open(f'{path}.new', 'w') as opened:
        opened.write(TEXT.format(began, ''.join([
            f'nfv_sched_ledger_refused_total{{status="{status}"}} {count}\n'
            for status, count in dict(REFUSED).items()])))
    os.replace(f'{path}.new', path)
