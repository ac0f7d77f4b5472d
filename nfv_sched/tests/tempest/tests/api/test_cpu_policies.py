# SPDX-License-Identifier: Apache-2.0
"""Shared vCPUs of pinned guests, and thread policies."""

from tempest import config
from tempest.lib import decorators

from nfv_sched.tests.tempest.tests.api import base

CONF = config.CONF

SHARED = 'nfv:shared_vcpu'
THREADS = 'hw:cpu_thread_policy'


class SharedVCPUTest(base.NFVSchedTest):
    """One vCPU floats, the others are pinned on the same NUMA node."""

    needed_filters = ('NFVTopologyFilter', 'SharedVCPUFilter')
    needed_options = ('dedicated_cpus', 'shared_cpus')

    def flavor(self, mask='^0', **extra_specs):
        return self.create_flavor(2, {
            'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': mask,
            'hw:numa_nodes': '1', SHARED: '0', **extra_specs})

    @decorators.idempotent_id('b7d4a9e2-3c10-4e95-96f8-5d2b1a7c8301')
    def test_shared_vcpu(self):
        node, = self.guest_nodes(self.boot(self.flavor()))
        self.assertEqual([0, 1], sorted(node['vcpu_set']))
        self.assertEqual(['1'], list(node['cpu_pinning']))

    @decorators.idempotent_id('b7d4a9e2-3c10-4e95-96f8-5d2b1a7c8302')
    def test_with_vswitch_affinity(self):
        self.require_filters('VSwitchNUMAAffinityFilter')
        server = self.boot(self.flavor(
            **{'nfv:vswitch_numa_affinity': 'strict'}))
        self.assert_with_vswitch(server)
        self.assertEqual(['1'],
                         list(self.guest_nodes(server)[0]['cpu_pinning']))

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('b7d4a9e2-3c10-4e95-96f8-5d2b1a7c8303')
    def test_dedicated_by_the_mask_negative(self):
        self.assert_reason(self.boot_refused(self.flavor('^1')),
                           f'{SHARED}=0', 'hw:cpu_dedicated_mask')

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('b7d4a9e2-3c10-4e95-96f8-5d2b1a7c8304')
    def test_thread_policy_negative(self):
        # Nova asks Placement for hosts with sibling threads, or for hosts
        # without. Where there are none no filter is asked for a reason.
        for policy, clouds in (('isolate', ('none', 'some')),
                               ('require', ('all', 'some'))):
            message = self.boot_refused(self.flavor(**{THREADS: policy}))
            if CONF.nfv_sched.hyperthreading in clouds:
                self.assert_reason(message, f'{SHARED}=0', THREADS)


class ThreadPolicyTest(base.NFVSchedTest):
    """Hosts that can never keep a thread policy refuse it."""

    needed_filters = ('NFVTopologyFilter', 'CPUThreadPolicyFilter')
    needed_options = ('dedicated_cpus',)

    def flavor(self, policy, vcpus=2):
        return self.create_flavor(*base.pinned(vcpus, **{THREADS: policy}))

    def require_hyperthreading(self, *values):
        """Skip the test unless the cloud is like that."""
        if CONF.nfv_sched.hyperthreading not in values:
            raise self.skipException(
                '[nfv_sched] hyperthreading is '
                f'{CONF.nfv_sched.hyperthreading}')

    @decorators.idempotent_id('f0a6d3c7-8e54-4b1d-a2f9-6c8e3b5d9401')
    def test_require(self):
        self.require_hyperthreading('all', 'some')
        node, = self.guest_nodes(self.boot(self.flavor('require')))
        self.assertEqual({'0', '1'}, set(node['cpu_pinning']))
        self.assertEqual(2, len(set(node['cpu_pinning'].values())))

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('f0a6d3c7-8e54-4b1d-a2f9-6c8e3b5d9402')
    def test_require_negative(self):
        self.require_hyperthreading('none')
        self.boot_refused(self.flavor('require'))

    @decorators.idempotent_id('f0a6d3c7-8e54-4b1d-a2f9-6c8e3b5d9403')
    def test_isolate(self):
        self.require_hyperthreading('none', 'some')
        node, = self.guest_nodes(self.boot(self.flavor('isolate')))
        self.assertEqual({'0', '1'}, set(node['cpu_pinning']))

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('f0a6d3c7-8e54-4b1d-a2f9-6c8e3b5d9404')
    def test_isolate_negative(self):
        self.require_hyperthreading('all')
        self.boot_refused(self.flavor('isolate'))

    @decorators.idempotent_id('f0a6d3c7-8e54-4b1d-a2f9-6c8e3b5d9405')
    def test_prefer(self):
        node, = self.guest_nodes(self.boot(self.flavor('prefer')))
        self.assertEqual({'0', '1'}, set(node['cpu_pinning']))
