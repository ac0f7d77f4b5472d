# SPDX-License-Identifier: Apache-2.0
"""What this process has placed and Neutron does not show yet."""

import time
import weakref

import fixtures

from nfv_sched.limits import demand
from nfv_sched.limits import reservations
from nfv_sched.tests import base
from nfv_sched.tests.unit.limits import snapshots

TWO = demand.NetworkDemand(vswitch_ports=2, rules=10)


class Holder(list):
    """What a weak reference can refer to."""


class MemoryTest(base.TestCase):
    """Entries and readings."""

    def setUp(self):
        super().setUp()
        self.recent = reservations.Memory()

    def unseen(self, snapshot, host='host1'):
        return self.recent.unseen(snapshot, host)

    def test_until_shown(self):
        """An entry counts as far as Neutron does not show the ports."""
        self.recent.add('host1', 'vm', TWO, 'p')
        self.assertEqual((2, 10), self.unseen(snapshots.snapshot()))
        self.assertEqual((0, 0), self.unseen(snapshots.snapshot(), 'host2'))
        part = snapshots.snapshot(
            [{'instance': 'vm', 'groups': ['a']}], rules={'a': 4})
        self.assertEqual((1, 6), self.unseen(part))
        whole = snapshots.snapshot(
            [{'instance': 'vm', 'groups': ['a']}] * 2, rules={'a': 5})
        self.assertEqual((0, 0), self.unseen(whole))

    def test_several(self):
        """Entries of a host add up; one of the same server replaces."""
        for instance in 'vm1', 'vm2', 'vm1':
            self.recent.add('host1', instance, TWO)
        self.assertEqual((4, 20), self.unseen(snapshots.snapshot()))

    def take(self, instance, answer=None):
        """Take room for two ports where there are ten.

        :returns: what keeps it, for as long as it is kept
        """
        holder = Holder()
        self.assertIsNone(self.recent.take(
            snapshots.snapshot(), 'host1', instance, TWO, 10, 100,
            weakref.ref(holder), answer))
        return holder

    def test_taken_again_where_it_is(self):
        """A guest that is not resized on its host stays there."""
        five = demand.NetworkDemand(vswitch_ports=5, rules=50)
        for end in 'given back', 'forgotten':
            self.recent.add('host1', 'vm', five)
            holder = self.take('vm')
            again = self.take('vm')
            self.assertEqual((2, 10), self.unseen(snapshots.snapshot()))
            if end == 'given back':
                self.recent.release('host1', 'vm')
            del holder, again
            unshown = self.recent.unshown('host1', 0.0, 0.0)
            self.assertEqual((5, 50), unshown[2:])
            self.assertEqual((5, 50), self.unseen(snapshots.snapshot()))
            self.recent.clear()

    def test_taken_long_ago(self):
        """It is not known by the time at which somebody else took it."""
        self.take('vm')
        answered = time.monotonic()
        holder = self.take('vm')
        self.assertEqual(
            (2, 10), self.recent.unshown('host1', 0.0, answered)[:2])
        del holder

    def test_shown(self):
        """What Neutron shows is not remembered any longer."""
        self.recent.add('host1', 'vm', TWO, 'p')
        before = snapshots.snapshot([{'instance': 'vm'}] * 2, age=10)
        self.assertEqual((0, 10), self.unseen(before))
        self.assertEqual(['vm'], list(self.recent.servers_on('host1')))
        self.assertEqual((0, 0), self.unseen(snapshots.snapshot(
            [{'instance': 'vm'}] * 2)))
        self.assertNotIn('host1', self.recent.hosts())

    def test_never_shown(self):
        """A guest that has no bound port counts for an hour."""
        for ports in ([], [{'instance': 'vm', 'host': ''}] * 2):
            self.recent.add('host1', 'vm', TWO, 'p')
            for age in 0, -610, -3590:
                self.assertEqual((2, 10), self.unseen(snapshots.snapshot(
                    ports, age=age)))
            now = time.monotonic()
            with fixtures.MonkeyPatch('time.monotonic', lambda: now + 3610):
                self.assertEqual((0, 0), self.unseen(snapshots.snapshot(
                    ports)))
            self.assertNotIn('host1', self.recent.hosts())

    def review(self, later=0.0, ports=(), deleted=(), hosts=None):
        """Review some time later; returns who is left, and who was asked."""
        asked = []

        def host_of(instance):
            asked.append(instance)
            return (hosts or {}).get(instance, '')

        now = time.monotonic()
        with fixtures.MonkeyPatch('time.monotonic', lambda: now + later):
            self.recent.review(
                snapshots.snapshot(ports), lambda servers: set(deleted),
                host_of)
        return sorted(
            (host, instance) for host in self.recent.hosts()
            for instance in self.recent.servers_on(host)), asked

    def test_review(self):
        """Nova knows of those that are never going to be shown."""
        for instance in 'vm1', 'vm2', 'vm3':
            self.recent.add('host1', instance, TWO, 'p')
        self.recent.add('host2', 'vm3', TWO, 'p')
        self.assertEqual(
            ([('host1', 'vm2'), ('host1', 'vm3'), ('host2', 'vm3')], []),
            self.review(deleted=['vm1']))
        self.assertEqual(
            ([('host2', 'vm3')], ['vm2', 'vm3', 'vm3']),
            self.review(later=610, hosts={'vm3': 'host2'}))

    def test_review_ends(self):
        """A cell that does not answer does not hold up the next reading."""
        for number in range(10):
            self.recent.add('host1', f'vm{number}', TWO, 'p')
        now = [time.monotonic() + 610]
        asked = []

        def host_of(instance):
            asked.append(instance)
            now[0] += 2
            return ''

        with fixtures.MonkeyPatch('time.monotonic', lambda: now[0]):
            self.recent.review(
                snapshots.snapshot(), lambda servers: set(), host_of)
        self.assertEqual(3, len(asked))
        self.assertEqual(7, len(self.recent.servers_on('host1')))

    def test_review_of_what_is_shown(self):
        """Nobody is asked about that."""
        self.recent.add('host1', 'vm1', TWO, 'p')
        self.recent.add('host1', 'vm2', TWO, 'p')
        self.assertEqual(([('host1', 'vm2')], []), self.review(
            ports=[{'instance': 'vm1'}] * 2 + [{'instance': 'vm2'}]))
        self.assertEqual(([('host1', 'vm2')], []), self.review(
            ports=[{'instance': 'vm2'}], deleted=['vm2']))

    def test_review_of_what_is_being_placed(self):
        """Whether Nova places it is not known yet."""
        self.assertIsNone(self.recent.take(
            None, 'host1', 'vm', TWO, 9, 99, lambda: self))
        self.assertEqual(([('host1', 'vm')], []), self.review(deleted=['vm']))

    def test_fewer_ports(self):
        """Nor does what a guest on the host has not got by then."""
        self.recent.add('host1', 'vm', TWO, 'p')
        ports = [{'instance': 'vm'}]
        self.assertEqual((1, 10), self.unseen(snapshots.snapshot(
            ports, age=-590)))
        self.assertEqual((0, 0), self.unseen(snapshots.snapshot(
            ports, age=-610)))

    def test_deleted(self):
        """A guest whose ports were there and are gone."""
        self.recent.add('host1', 'vm', TWO, 'p')
        part = snapshots.snapshot([{'instance': 'vm'}])
        self.assertEqual((1, 10), self.unseen(part))
        self.assertEqual((0, 0), self.unseen(snapshots.snapshot()))
        self.assertNotIn('host1', self.recent.hosts())

    def test_elsewhere(self):
        """A guest that another host has built."""
        self.recent.add('host1', 'vm', TWO, 'p')
        self.assertEqual((0, 0), self.unseen(snapshots.snapshot(
            [{'instance': 'vm', 'host': 'host2'}])))
        self.assertNotIn('host1', self.recent.hosts())

    def test_old_reading_ends_nothing(self):
        """A reading that began before the guest was placed."""
        self.recent.add('host1', 'vm', TWO, 'p')
        for ports in ([], [{'instance': 'vm', 'host': 'host2'}]):
            self.assertEqual((2, 10), self.unseen(snapshots.snapshot(
                ports, age=5)))
        self.assertEqual((2, 10), self.unseen(snapshots.snapshot()))

    def test_placed_again(self):
        """What became of the old entry does not end the new one."""
        def deleted(servers):
            self.recent.add('host1', 'vm', TWO, 'p')
            return set(servers)

        self.recent.add('host1', 'vm', TWO, 'p')
        self.recent.review(snapshots.snapshot(), deleted, str)
        self.assertEqual((2, 10), self.unseen(snapshots.snapshot()))

    def test_old_reading(self):
        """However old the reading, what was placed since counts."""
        self.recent.add('host1', 'vm', TWO, 'p')
        self.assertEqual((2, 10), self.unseen(snapshots.snapshot(age=1000)))

    def test_swept(self):
        """Entries of hosts that nobody asks about are not kept for ever."""
        now = time.monotonic()
        self.recent.add('host1', 'old', TWO)
        with fixtures.MonkeyPatch('time.monotonic', lambda: now + 8000):
            self.recent.add('host2', 'new', TWO)
        self.assertEqual(['host2'], list(self.recent.hosts()))


class MovesTest(base.TestCase):
    """A guest with two ports is on its way from host2 to host1."""

    def setUp(self):
        super().setUp()
        self.recent = reservations.Memory()

    def shown(self, *hosts, **kwargs):
        """What Neutron shows of the ports of the guest."""
        return snapshots.snapshot([
            {'instance': 'vm', 'host': host, 'id': f'own{number}'}
            for number, host in enumerate(hosts)], **kwargs)

    def unseen(self, *hosts, age=0):
        return self.recent.unseen(self.shown(*hosts, age=age), 'host1')[0]

    def place(self, *hosts):
        """Place it when Neutron showed this."""
        self.recent.add('host1', 'vm', TWO, 'p', True,
                        self.shown(*hosts, age=30))

    def test_slow(self):
        """As long as it takes, but for an hour."""
        self.place('host2', 'host2')
        for age in (0, -70, -1000, -3500):
            self.assertEqual(2, self.unseen('host2', 'host2', age=age))
        self.assertEqual(1, self.unseen('host1', 'host2', age=-3500))
        self.assertEqual(0, self.unseen('host1', 'host1', age=-3500))
        self.assertNotIn('host1', self.recent.hosts())
        self.place('host2', 'host2')
        now = time.monotonic()
        with fixtures.MonkeyPatch('time.monotonic', lambda: now + 3590):
            self.assertEqual(2, self.unseen('host2', 'host2'))
        with fixtures.MonkeyPatch('time.monotonic', lambda: now + 3610):
            self.assertEqual(0, self.unseen('host2', 'host2'))
        self.assertNotIn('host1', self.recent.hosts())

    def test_source_that_was_not_read_yet(self):
        """It had come to host2 after the last reading."""
        for known in ((), ('host3', 'host3')):
            self.place(*known)
            for age in (0, -1000):
                self.assertEqual(2, self.unseen('host2', 'host2', age=age))

    def test_elsewhere(self):
        """Another host has taken it."""
        self.place('host2', 'host2')
        self.assertEqual(2, self.unseen('host2', 'host2'))
        self.assertEqual(2, self.unseen('host2', 'host3'))
        self.assertEqual(0, self.unseen('host3', 'host3'))
        self.assertNotIn('host1', self.recent.hosts())

    def test_deleted(self):
        self.place('host2', 'host2')
        self.assertEqual(0, self.unseen())
        self.assertNotIn('host1', self.recent.hosts())

    def test_unbound(self):
        """It was shelved and is built anew, or is not."""
        self.place('', '')
        self.assertEqual(2, self.unseen('', '', age=-3590))

    def test_on_its_own_host(self):
        """A resize that stays takes nothing that Neutron does not show."""
        self.place('host1', 'host1')
        self.assertEqual(0, self.unseen('host1', 'host1'))
        self.assertNotIn('host1', self.recent.hosts())


class UnshownTest(base.TestCase):
    """Entries and what Placement has answered a request."""

    def setUp(self):
        super().setUp()
        self.recent = reservations.Memory()
        self.now = 1000.0
        self.useFixture(fixtures.MonkeyPatch(
            'time.monotonic', lambda: self.now))

    def take(self, instance, when):
        """A request takes its room, before Nova claims it."""
        self.now = when
        self.assertIsNone(self.recent.take(
            None, 'host1', instance, TWO, 9, 99, lambda: self))

    def place(self, instance, when):
        """Nova has made its own."""
        self.now = when
        self.recent.add('host1', instance, TWO)

    def assertUnshown(self, surely, perhaps):
        """So many guests are not in an answer, asked at 1010, had at 1020."""
        self.now = 1030.0
        self.assertEqual(
            (2 * surely, 10 * surely, 2 * perhaps, 10 * perhaps),
            self.recent.unshown('host1', 1010.0, 1020.0))

    def test_before(self):
        """What was placed before the question is in the answer."""
        self.take('vm', 1000.0)
        self.place('vm', 1005.0)
        self.assertUnshown(0, 0)

    def test_meanwhile(self):
        """What was being placed at that moment may be in it."""
        self.take('vm', 1000.0)
        self.assertUnshown(0, 1)
        self.place('vm', 1015.0)
        self.assertUnshown(0, 1)
        self.take('vm2', 1015.0)
        self.place('vm2', 1025.0)
        self.assertUnshown(0, 2)

    def test_since(self):
        """What was begun after the answer is not in it."""
        self.take('vm', 1022.0)
        self.assertUnshown(1, 1)
        self.place('vm', 1025.0)
        self.assertUnshown(1, 1)

    def test_not_placed(self):
        """What Nova does not place after all does not count."""
        self.take('vm', 1022.0)
        self.recent.release('host1', 'vm')
        self.assertUnshown(0, 0)
        self.now = 1022.0 - reservations.TAKE_SECONDS
        self.take('vm', self.now - 1)
        self.assertUnshown(0, 0)

    def test_itself(self):
        """A server does not stand in its own way."""
        self.take('vm', 1022.0)
        self.assertEqual((0, 0, 0, 0), self.recent.unshown(
            'host1', 1010.0, 1020.0, 'vm'))

    def test_left(self):
        """The answer decides; where it leaves a doubt, Neutron does."""
        for expected, *figures in (
                # Left in the answer, surely and perhaps not in it, left by
                # other figures, needed.
                (7, 10, 0, 3, 0, 2),
                (1, 10, 9, 9, 50, 2),
                (0, 10, 10, 12, 50, 2),
                (9, 10, 1, 9, 50, 2),
                (1, 10, 0, 9, 1, 2),
                (-3, -3, 0, 0, 50, 1),
                (5, None, 1, 1, 5, 2)):
            with self.subTest(figures=figures):
                self.assertEqual(expected, reservations.left(*figures))
