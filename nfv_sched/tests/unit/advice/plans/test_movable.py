#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""Servers that Nova moves, and those that stay."""

import dataclasses

from nfv_sched.advice.plans import movable
from nfv_sched.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests import snapshots


def server(specs=None, **fields):
    return snapshots.server(
        pins={0: [0]}, flavor=snapshots.flavor(**(specs or {})), **fields)


class MovableTest(base.TestCase):

    def reasons(self, found, host=None):
        """Why a server cannot be moved, by kind."""
        return {kind: movable.why_not(kind, found, host or snapshots.host())
                for kind in (movable.LIVE, movable.COLD, movable.EVACUATE)}

    def assertStays(self, found, live, cold=None, evacuate=None, host=None):
        self.assertEqual({
            movable.LIVE: live, movable.COLD: cold,
            movable.EVACUATE: evacuate}, self.reasons(found, host))

    def test_moves(self):
        self.assertStays(server(), None)

    def test_states(self):
        self.assertStays(server(state='stopped'), 'it is stopped')
        self.assertStays(server(state='paused'), None, 'it is paused',
                         'it is paused')
        self.assertStays(server(state='resized'), *['it is resized'] * 3)
        self.assertStays(server(state='error'), *['it is error'] * 2)

    def test_busy(self):
        self.assertStays(server(task='rebooting'),
                         *['Nova is busy with it (rebooting)'] * 2)

    def test_host_down(self):
        reason = ('the compute service on compute-1 is down: evacuate it')
        self.assertStays(server(), reason, reason,
                         host=snapshots.host(up=False))

    def test_host_unknown(self):
        self.assertEqual('its host is not known',
                         movable.why_not(movable.COLD, server(), None))

    def test_shares(self):
        found = server(shares=True)
        reason = 'it has a share of Manila'
        self.assertStays(found, *[reason] * 3)
        for nova, expected in (('34.0.0', None), ('33.0.1', reason)):
            self.assertEqual(expected, movable.why_not(
                movable.COLD, found, snapshots.host(), nova))
            self.assertEqual(reason, movable.why_not(
                movable.LIVE, found, snapshots.host(), nova))

    def test_tpm(self):
        live = 'only its owner can read the secret of its TPM'
        evacuate = 'Nova evacuates no server with a TPM'
        self.assertStays(server({'hw:tpm_version': '2.0'}), live, None,
                         evacuate)
        self.assertStays(server(image={'hw_tpm_version': '2.0'}), live, None,
                         evacuate)
        self.assertStays(
            server({'hw:tpm_version': '2.0',
                    'hw:tpm_secret_security': 'host'}), None, None, evacuate)

    def test_memory_encryption(self):
        self.assertStays(server({'hw:mem_encryption': 'True'}),
                         'its memory is encrypted')
        self.assertStays(server(image={'hw_mem_encryption': 'no'}), None)

    def test_local_volume(self):
        """Nova migrates none, unless the disk is on a volume of Cinder."""
        specs = {'aggregate_instance_extra_specs:storage': 'local_lvm'}
        self.assertStays(
            server(specs), *['its disk is a local volume of LVM'] * 2)
        self.assertStays(dataclasses.replace(
            server(specs, allocations={'rp': {'VCPU': 1}}),
            flavor=dataclasses.replace(
                server(specs).flavor, disk=10)), None)

    def test_accelerators(self):
        reason = 'it has an accelerator of Cyborg'
        self.assertStays(server({'accel:device_profile': 'fpga'}), reason,
                         reason)
        self.assertStays(
            server(ports=(snapshot.Port(
                id='port', vnic_type='accelerator-direct'),)), *[reason] * 3)
