# SPDX-License-Identifier: Apache-2.0

"""The examples do what they say."""

import pathlib
import re

from nfv_sched.nova import scheduler
from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.ops.cloud.cloud_file import loader
from nfv_sched.ops.cloud.cloud_file import text as cloud_text
from nfv_sched.tests.unit.ops.simulator import base

# One for each feature of the platform that must go on working.
PLATFORM = (
    'aggregates', 'availability-zones', 'cold-migration', 'cpu-features',
    'cpu-pinning', 'evacuate', 'huge-pages', 'io-numa', 'live-migration',
    'multi-create', 'numa', 'ovs-dpdk', 'pci-passthrough', 'rebuild',
    'resize', 'server-groups', 'shelve', 'sr-iov', 'thread-policies')

LIVE_MIGRATION = 'platform/live-migration'
# The same with what is expected on a Nova with bug 2153425.
BEFORE_34 = pathlib.Path(__file__).with_name('live-migration-before-34.yaml')

STOCK = """
filters:
  - ComputeFilter
  - AggregateInstanceExtraSpecsFilter
  - ServerGroupAntiAffinityFilter
  - ServerGroupAffinityFilter
  - PciPassthroughFilter
  - NUMATopologyFilter
"""


class ExamplesTestCase(base.SimulatorTestCase):

    def check(self, text: str, seed: int = 0):
        result = self.run_cloud(text, seed)
        self.assertEqual([], list(result.failures))
        self.assertGreater(result.checks, 0)
        return result

    def text(self, name: str) -> str:
        path = examples.find()[name]
        if name == LIVE_MIGRATION and not (
                scheduler.live_migration_carries_limits()):
            path = BEFORE_34
        return cloud_text.read(str(path))

    def test_live_migration_before_34(self):
        """What is expected differs, the cloud is the same."""
        clouds = []
        for path in BEFORE_34, examples.find()[LIVE_MIGRATION]:
            text = cloud_text.read(str(path))
            clouds.append(text[text.index('hosts:'):text.index('steps:')])
        self.assertEqual(*clouds)

    def test_they_are_found(self):
        found = examples.find()
        self.assertEqual(sorted(found), list(found))
        self.assertLessEqual(
            {'telco', *(f'platform/{name}' for name in PLATFORM)},
            found.keys())
        for path in found.values():
            self.assertTrue(examples.description(path))

    def test_platform(self):
        for name in PLATFORM:
            with self.subTest(name=name):
                text = self.text(f'platform/{name}')
                for seed in range(2):
                    self.check(text, seed)
                # One guest with a policy beside others without.
                with_policy = [' nfv:', "'nfv:", ' hw:numa_node.']
                self.assertTrue(any(key in text for key in with_policy))

    def test_platform_feature_by_feature_needs_the_filters(self):
        for name in PLATFORM:
            with self.subTest(name=name):
                text = self.text(f'platform/{name}')
                head, _, tail = text.partition('filters:\n')
                tail = tail[tail.index('hosts:'):] if tail else ''
                result = self.run_cloud(f'{head}\n{tail}{STOCK}')
                self.assertNotEqual([], list(result.failures))

    def test_devices_in_placement(self):
        """Who keeps count of the devices makes no difference here."""
        checked = 0
        for name in examples.find():
            text = self.text(name)
            if 'pci_devices:' in text and 'vfs:' not in text:
                with self.subTest(name=name):
                    self.check(f'pci_in_placement: true\n{text}')
                    checked += 1
        self.assertGreater(checked, 5)

    def test_with_several_seeds(self):
        for name in ('all-policies', 'carrier-grade', 'cookbook', 'fragmented',
                     'hyper-converged', 'network-nodes', 'network-nodes-ovn',
                     'ports-fill-up', 'refusals', 'router-guest', 'two-hosts'):
            with self.subTest(name=name):
                for seed in range(3):
                    self.check(self.text(name), seed)

    def fails(self, text, boot):
        """Check that a boot does not go as the file expects."""
        failures = self.run_cloud(text).failures
        self.assertTrue(any(f'(boot {boot}' in failure
                            for failure in failures))

    def test_hyper_converged(self):
        text = self.text('hyper-converged')
        # Without the place there is nothing to keep away from.
        self.fails(text.replace('places: {osd: [0]}', 'places: {osd: []}'),
                   'wide-late)')
        # Nova's own filters keep nobody away.
        self.fails(f'{text}\n{STOCK}', 'wide-late)')

    def test_ports_fill_up(self):
        text = self.text('ports-fill-up')
        self.check(text.replace('ledger: placement', 'ledger: none'))
        self.fails(f'{text}\n{STOCK}', 'one)')

    def test_network_nodes_need_the_weighers(self):
        multipliers = ', '.join(
            f'{name}_weight_multiplier: 0.0'
            for name in ('dhcp_server', 'router', 'vswitch_port'))
        for name in ('network-nodes', 'network-nodes-ovn'):
            self.fails(f'options: {{nfv_sched: {{{multipliers}}}}}\n'
                       f'{self.text(name)}', 'guest-1 ')

    def test_thousand_hosts(self):
        text = self.text('thousand-hosts')
        cloud = loader.loads(text)
        self.assertEqual(1000, len(cloud.cloud.hosts))
        self.assertEqual(200, sum(len(s.targets) for s in cloud.steps))
        # The same with a twentieth of everything.
        self.check(re.sub(
            r'(count|placed): (\d+)',
            lambda m: f'{m[1]}: {int(m[2]) // 20}', text))
