# SPDX-License-Identifier: Apache-2.0
"""A service as ``nova-scheduler`` is one, started by oslo.service.

Run by a test in a process of its own: ``python -m <this module> <nova.conf>``.
The parent uses the source before it forks; each worker prints its process ID
and the number of ports it sees, at first and whenever the number changes.
"""

# NOTE: Up to Nova 32 this patches Python's modules by eventlet, as it does in
# nova-scheduler.
import nova.cmd  # noqa: F401, I100

from nfv_sched.nova import concurrency

concurrency.service()

import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

from oslo_service import service  # noqa: E402

from nfv_sched.ledger import neutron  # noqa: E402
from nfv_sched.scheduler import figures  # noqa: E402

WORKERS = 2


class Worker(service.Service):
    """What runs in each worker."""

    def start(self):
        """Look at the snapshot in a thread, as requests do."""
        super().start()
        threading.Thread(target=self._look, daemon=True).start()

    @staticmethod
    def _look():
        ports = None
        while True:
            snapshot = figures.process_sources().figures.get()
            if snapshot is not None and len(snapshot.ports) != ports:
                ports = len(snapshot.ports)
                print(json.dumps([os.getpid(), ports]), flush=True)
            time.sleep(0.02)


def main():
    """Fork the workers and wait for a signal to end them."""
    neutron.CONF(['--config-file', sys.argv[1]], project='nova')
    if figures.process_sources().figures.get() is None:
        sys.exit('the parent has no snapshot')
    service.launch(neutron.CONF, Worker(), workers=WORKERS).wait()


if __name__ == '__main__':
    main()
