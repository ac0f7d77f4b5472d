# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched metrics``, as a service reads a cloud."""

import os
import signal
import time
import urllib.request

from nova.db.main import models as main_models
from prometheus_client import parser
import sqlalchemy as sa

from nfv_sched.tests.functional import test_ledger_process


class ServiceTest(test_ledger_process.ProcessTestCase):
    def scrape(self, url):
        with urllib.request.urlopen(url, timeout=60) as answer:
            return {
                (sample.name, *sample.labels.values()): sample.value
                for family in parser.text_string_to_metric_families(
                    answer.read().decode()) for sample in family.samples}

    def test_read_again_and_again(self):
        engine = sa.create_engine(f'sqlite:///{self.directory}/cell1.sqlite')
        with engine.begin() as connection:
            connection.execute(main_models.ComputeNode.__table__.update(
            ).values(cpu_allocation_ratio=4.0, ram_allocation_ratio=1.0,
                     disk_allocation_ratio=1.0))
        engine.dispose()
        with open(self.conf, 'a') as conf:
            conf.write(f'ledger_metrics = {self.directory}/ledger.prom\n')
        began = time.time()
        self.wait_until(self.start(), lambda: os.path.exists(
            f'{self.directory}/ledger.prom'))
        process = self.start('metrics', '--listen', '127.0.0.1:0',
                             '--interval', '1',
                             module='nfv_sched.ops.cli.base')
        url = process.stdout.readline().strip()
        time_key = ('nfv_sched_snapshot_timestamp_seconds',)
        taken, end = set(), time.monotonic() + 120
        while len(taken) < 3:
            found = self.scrape(url)
            taken |= {found.get(time_key)}
            if found['nfv_sched_collection_errors_total',]:
                process.kill()
                self.fail(process.communicate()[1])
            self.assertLess(time.monotonic(), end, found)
            time.sleep(0.2)
        self.assertEqual(
            ['host1'], [key[1] for key in found
                        if key[0] == 'nfv_sched_host_info'])
        self.assertEqual(
            3, found['nfv_sched_network_services', 'host1', 'dhcp'])
        self.assertLess(
            began, found['nfv_sched_ledger_timestamp_seconds',])
        self.assertEqual(0, found['nfv_sched_late_failures', 'claim'])
        process.send_signal(signal.SIGTERM)
        _out, err = process.communicate(timeout=300)
        self.assertEqual((0, ''), (
            process.returncode, test_ledger_process.without_progress(err)))
