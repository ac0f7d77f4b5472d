# SPDX-License-Identifier: Apache-2.0
"""Servers that Nova moves, and those that stay."""

import dataclasses

from nova.network import model as network_model

from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import movable
from nfv_sched.tests import base
from nfv_sched.tests import snapshots

Kind = movable.ObstacleKind


def server(specs=None, **fields):
    return snapshots.server(
        pins={0: [0]}, flavor=snapshots.flavor(**(specs or {})), **fields)


class MovableTest(base.TestCase):

    def assertStays(self, found, live, cold=None, evacuate=None, shelve=None,
                    host=None, name=''):
        """Assert why a server cannot be moved; the obstacles name ``name``."""
        self.assertEqual(
            [kind and movable.obstacle(kind, name)
             for kind in (live, cold, evacuate, shelve)],
            [movable.why_not(kind, found, host or snapshots.host())
             for kind in movable.MoveKind])

    def test_texts(self):
        """Clauses to be read after the name of the server."""
        self.assertEqual(
            ['its host is not known',
             'the compute service on x{} is down: evacuate it',
             'Nova is busy with it (x{})', 'it is x{}', 'it is locked',
             'it has an accelerator of Cyborg', 'it has a share of Manila',
             'its disk is a local volume of LVM',
             'only its owner can read the secret of its TPM',
             'Nova evacuates no server with a TPM',
             'Nova shelves no server with a TPM',
             'its memory is encrypted',
             'it has PCI devices of an alias that is not live_migratable',
             'as --avoid says', 'as --live-only says', 'as --max-moves says',
             'a live migration would detach its VFs',
             'a live migration would lose its limits (bug 2153425)',
             'x{}', 'live to x{}'],
            [movable.obstacle(kind, 'x{}').text for kind in Kind])

    def test_avoided(self):
        """A name with brackets is itself, whatever it is as a pattern."""
        options = movable.MoveOptions(avoid=('vm[1]', 'tw?'))
        self.assertEqual(['vm[1]', 'two'], [
            name for name in ('vm[1]', 'vm2', 'two', 'one')
            if options.avoids(name)])

    def test_moves(self):
        self.assertStays(server(), None)

    def test_vfs_detached(self):
        types = network_model.VNIC_TYPES_DIRECT_PASSTHROUGH
        self.assertEqual(set(types), set(movable.DETACHED_VNIC_TYPES))
        ports = [snapshot.Port(id=each, vnic_type=each) for each in (
            *types, 'normal', 'macvtap', 'virtio-forwarder')]
        self.assertEqual(len(types), movable.vfs_detached(
            server(ports=tuple(ports))))
        self.assertEqual(0, movable.vfs_detached(server(ports=())))
        self.assertIsNone(movable.vfs_detached(server(ports=None)))

    def test_copied(self):
        large = dataclasses.replace(snapshots.flavor(), memory=512)
        for kind, allocations, amounts in (
                (movable.COLD, {'one': {'DISK_GB': 25}}, (0, 25600)),
                # On a volume, but for the ephemeral disk.
                (movable.LIVE, {'one': {'DISK_GB': 5}}, (512, 5120)),
                # On storage that hosts share.
                (movable.LIVE, {'one': {'VCPU': 1}, 'all': {'DISK_GB': 25}},
                 (512, 0)),
                (movable.LIVE, {}, (512, None)),
                (movable.COLD, None, (0, None))):
            found = movable.copied(kind, dataclasses.replace(
                server(), flavor=large, allocations=allocations), 'one')
            self.assertEqual(amounts, (found.memory_mib, found.disk_mib))
        for kind in (movable.EVACUATE, movable.SHELVE):
            self.assertIsNone(movable.copied(kind, server(), 'one'))

    def test_states(self):
        for state, *kinds in (
                ('stopped', Kind.STATE), ('paused', None, *[Kind.STATE] * 2),
                ('suspended', *[Kind.STATE] * 3),
                ('shelved', *[Kind.STATE] * 3),
                ('resized', *[Kind.STATE] * 4),
                ('error', *[Kind.STATE] * 2, None, Kind.STATE)):
            self.assertStays(server(state=state), *kinds, name=state)

    def test_busy(self):
        self.assertStays(server(task='rebooting'),
                         *[Kind.BUSY] * 2, None, Kind.BUSY, name='rebooting')

    def test_locked(self):
        """It is evacuated nevertheless: its host is lost."""
        self.assertStays(server(locked=True), Kind.LOCKED, Kind.LOCKED, None,
                         Kind.LOCKED)

    def test_host_down(self):
        self.assertStays(server(), *[Kind.SERVICE_DOWN] * 2, None,
                         Kind.SERVICE_DOWN,
                         host=snapshots.host(up=False), name='compute-1')

    def test_host_unknown(self):
        self.assertEqual(movable.obstacle(Kind.HOST_UNKNOWN),
                         movable.why_not(movable.COLD, server(), None))

    def test_shares(self):
        found = server(shares=True)
        share = movable.obstacle(Kind.SHARE)
        self.assertStays(found, *[Kind.SHARE] * 4)
        for nova, expected in (('34.0.0', None), ('33.0.1', share)):
            self.assertEqual(expected, movable.why_not(
                movable.COLD, found, snapshots.host(), nova))
            self.assertEqual(share, movable.why_not(
                movable.LIVE, found, snapshots.host(), nova))

    def test_tpm(self):
        live, others = Kind.TPM_SECRET, (Kind.TPM, Kind.TPM_SHELVED)
        self.assertStays(server({'hw:tpm_version': '2.0'}), live, None,
                         *others)
        self.assertStays(server(image={'hw_tpm_version': '2.0'}), live, None,
                         *others)
        self.assertStays(
            server({'hw:tpm_version': '2.0',
                    'hw:tpm_secret_security': 'host'}), None, None, *others)

    def test_memory_encryption(self):
        self.assertStays(server({'hw:mem_encryption': 'True'}), Kind.ENCRYPTED)
        self.assertStays(server(image={'hw_mem_encryption': 'no'}), None)

    def test_local_volume(self):
        """Nova migrates none, unless the disk is on a volume of Cinder."""
        specs = {'aggregate_instance_extra_specs:storage': 'local_lvm'}
        self.assertStays(server(specs), *[Kind.LOCAL_DISK] * 2)
        self.assertStays(dataclasses.replace(
            server(specs, allocations={'rp': {'VCPU': 1}}),
            flavor=dataclasses.replace(
                server(specs).flavor, disk=10)), None)

    def test_accelerators(self):
        self.assertStays(server({'accel:device_profile': 'fpga'}),
                         *[Kind.ACCELERATOR] * 2)
        self.assertStays(
            server(ports=(snapshot.Port(
                id='port', vnic_type='accelerator-direct'),)),
            *[Kind.ACCELERATOR] * 4)
