# SPDX-License-Identifier: Apache-2.0
"""What is published of a host, by its figures alone."""

import math
import uuid

from hypothesis import given
from hypothesis import strategies as st

from nfv_sched.ledger import client
from nfv_sched.ledger import inventory as ledger_inventory
from nfv_sched.limits import names as ledger_names
from nfv_sched.limits import options
from nfv_sched.limits import usage
from nfv_sched.tests import base


def host_limits(ports=20.0, physical=2, rules=100.0):
    return options.Limits(ports, physical, 8, 8, 8, 250, rules, 128)


def load(guests=(), others=0, rules=0):
    """Usage by guests, (UUID, ports, rules) each, and others."""
    found = {
        name: usage.GuestUsage(tuple(f'{name}-{n}' for n in range(ports)),
                               count)
        for name, ports, count in guests}
    return ledger_inventory.Load(
        others + sum(len(guest.ports) for guest in found.values()),
        rules + sum(guest.rules for guest in found.values()), found)


def allocation(ports=0, rules=0):
    return {name: amount for name, amount in (
        (ledger_names.PORTS, ports), (ledger_names.RULES, rules)) if amount}


def inventories(host, allocations=None, migrations=None, **kwargs):
    """(total, reserved) of ports and of rules."""
    accounts = ledger_inventory.accounts(
        host, ledger_inventory.by_server(
            allocations or {}, migrations or {}),
        host_limits(**kwargs))
    return tuple(tuple(accounts[name].inventory())
                 for name in (ledger_names.PORTS, ledger_names.RULES))


class InventoryTest(base.TestCase):
    def inventory(self, limit, allocated, unallocated):
        return tuple(ledger_inventory.Account(
            limit, allocated, unallocated).inventory())

    def test_inventory(self):
        for expected, account in (
            ((254, 4), (254, 0, 4)),
            ((254, 4), (254, 250, 4)),
            ((254, 254), (254, 0, 254)),
            ((254, 254), (254, 0, 1000)),
            # What is allocated stays below the total.
            ((300, 50), (254, 300, 4)),
            # Half a port is none.
            ((10, 2), (10.9, 0, 2)),
            ((1, 1), (0.5, 0, 0)),
            ((ledger_names.UNLIMITED, 10), (math.inf, 10, 10)),
            ((ledger_names.UNLIMITED, 10), (1e12, 10, 10)),
        ):
            self.assertEqual(expected, self.inventory(*account), account)

    def test_overdrawn(self):
        for expected, account in (
            (False, (10, 10, 5)), (True, (10, 11, 0)), (False, (10, 0, 50)),
            (False, (math.inf, 10 ** 6, 0)),
        ):
            self.assertEqual(
                expected, ledger_inventory.Account(*account).overdrawn)

    @given(st.one_of(st.just(math.inf),
                     st.floats(0.001, 1e10, allow_nan=False)),
           st.integers(0, 10 ** 6), st.integers(0, 10 ** 6))
    def test_placement_accepts_it(self, limit, allocated, unallocated):
        """And what it lets in never exceeds the limit."""
        account = ledger_inventory.Account(limit, allocated, unallocated)
        total, reserved = inventory = account.inventory()
        self.assertTrue(1 <= total <= ledger_names.UNLIMITED)
        self.assertTrue(0 <= reserved <= total)
        self.assertGreaterEqual(total, allocated)
        if limit < ledger_names.UNLIMITED:
            self.assertEqual(max(math.floor(limit) - unallocated, 0),
                             inventory.capacity)


class UpdateTest(base.TestCase):
    """What is written if others may know better."""

    def update(self, existing, wanted, can_raise=False):
        """(total, reserved) of ports, and whether that is all."""
        written, complete = ledger_inventory.update(
            {name: inventory.to_placement()
             for name, inventory in existing.items()}, wanted, can_raise)
        return {name: (inventory['total'], inventory['reserved'])
                for name, inventory in written.items()}, complete

    def test_figures(self):
        """They are as old as a raised capacity would be."""
        def numbers(written):
            return {name: inventory['total'] - inventory['reserved']
                    - ledger_names.UNLIMITED
                    for name, inventory in written.items()}

        known = ledger_inventory.Load(0, 0, {}, dhcp_servers=3, routers=2)
        written, complete = ledger_inventory.update(
            {}, {}, True, known.figures())
        self.assertTrue(complete)
        self.assertEqual({ledger_names.DHCP_SERVERS: -3,
                          ledger_names.ROUTERS: -2}, numbers(written))
        fewer = ledger_inventory.Load(0, 0, {}, routers=1)
        for can_raise, expected in (
                (False, numbers(written)), (True, {ledger_names.ROUTERS: -1})):
            self.assertEqual(expected, numbers(ledger_inventory.update(
                written, {}, can_raise, fewer.figures())[0]))

    def test_update(self):
        inventory = ledger_inventory.LedgerInventory
        existing = {ledger_names.PORTS: inventory(20, 5)}
        for expected, wanted, can_raise in (
            (((20, 6), True), (20, 6), False),
            (((20, 4), True), (20, 4), True),
            (((20, 5), False), (20, 4), False),
            # As much room.
            (((25, 10), True), (25, 10), False),
            (((20, 5), False), (25, 9), False),
        ):
            written, complete = self.update(
                existing, {ledger_names.PORTS: inventory(*wanted)}, can_raise)
            self.assertEqual(expected, (written[ledger_names.PORTS], complete))

    def test_each_class_by_itself(self):
        inventory = ledger_inventory.LedgerInventory
        self.assertEqual(
            ({ledger_names.PORTS: (20, 5), ledger_names.RULES: (100, 60),
              'VGPU': (1, 0)}, False),
            self.update(
                {ledger_names.PORTS: inventory(20, 5),
                 ledger_names.RULES: inventory(100, 50),
                 'VGPU': inventory(1, 0)},
                {ledger_names.PORTS: inventory(20, 4),
                 ledger_names.RULES: inventory(100, 60)}))

    def test_not_published_yet(self):
        inventory = ledger_inventory.LedgerInventory
        wanted = {ledger_names.PORTS: inventory(20, 4)}
        self.assertEqual(({}, False), self.update({}, wanted))
        self.assertEqual(({ledger_names.PORTS: (20, 4)}, True),
                         self.update({}, wanted, True))

    def test_ratio_changed_by_hand(self):
        """What there is room for is what Placement makes of it."""
        existing = ledger_inventory.LedgerInventory(20, 5).to_placement()
        existing['allocation_ratio'] = 2.0
        wanted = ledger_inventory.LedgerInventory(20, 4)
        self.assertEqual(
            ({ledger_names.PORTS: wanted.to_placement()}, True),
            ledger_inventory.update({ledger_names.PORTS: existing},
                                    {ledger_names.PORTS: wanted}, False))


class AccountsTest(base.TestCase):
    def test_migration(self):
        """It covers the guest that moves, and no other."""
        host = load([('vm1', 3, 30), ('vm2', 2, 20)])
        allocations = {'migration': allocation(3, 30)}
        self.assertEqual(
            ((20, 4), (100, 20)),
            inventories(host, allocations, {'migration': 'vm1'}))
        self.assertEqual(
            ((20, 5), (100, 30)),
            inventories(host, allocations, {'migration': 'vm2'}))
        self.assertEqual(((20, 7), (100, 50)), inventories(host, allocations))

    def test_guest_whose_port_counted_elsewhere(self):
        """What it is covered by does not depend on what it counts as."""
        host = load([('vm1', 2, 20)], others=1, rules=10)
        accounts = ledger_inventory.accounts(
            host._replace(servers={
                'vm1': usage.GuestUsage(('a', 'b', 'c'), 30)}),
            {'vm1': allocation(3, 30)}, host_limits())
        self.assertEqual([(20, 2), (100, 0)], [
            tuple(account.inventory()) for account in accounts.values()])

    _guests = st.dictionaries(
        st.sampled_from(['vm1', 'vm2', 'vm3']),
        st.tuples(st.integers(0, 8), st.integers(0, 50)))
    _consumers = st.dictionaries(
        st.sampled_from(['vm1', 'vm2', 'vm3', 'vm4', 'm1', 'm2']),
        st.tuples(st.integers(0, 8), st.integers(0, 50)))

    @given(_guests, _consumers, st.dictionaries(
        st.sampled_from(['m1', 'm2']), st.sampled_from(['vm1', 'vm2'])),
        st.integers(0, 30), st.integers(0, 100), st.integers(1, 40),
        st.integers(0, 10))
    def test_never_too_much(
        self, guests, consumers, migrations, others, rules, limit, physical,
    ):
        """All that is there, and all that may still come, is in the limit.

        Each port that is there is either covered by an allocation of its own
        guest or reserved; so the host is never fuller than its limit, unless
        it already was.
        """
        host = load([(name, *figures) for name, figures in guests.items()],
                    others, rules)
        accounts = ledger_inventory.accounts(
            host, ledger_inventory.by_server(
                {name: allocation(*figures)
                 for name, figures in consumers.items()}, migrations),
            host_limits(limit, physical, limit * 4))
        for index, name, there in (
            (0, ledger_names.PORTS, physical + others),
            (1, ledger_names.RULES, rules),
        ):
            account = accounts[name]
            allocated = sum(figures[index] for figures in consumers.values())
            self.assertEqual(allocated, account.allocated)
            # What the guests come to, if each also takes what it has
            # allocated and not bound yet.
            expected = there
            names = set(guests) | {
                migrations.get(consumer, consumer) for consumer in consumers}
            for guest in names:
                expected += max(
                    guests.get(guest, (0, 0))[index], sum(
                        figures[index]
                        for consumer, figures in consumers.items()
                        if migrations.get(consumer, consumer) == guest))
            self.assertEqual(expected, account.allocated + account.unallocated)
            inventory = account.inventory()
            more = inventory.capacity - allocated  # what Placement lets in
            if more > 0:
                self.assertLessEqual(expected + more, account.limit)
            elif more < 0 or inventory.capacity == 0:
                self.assertGreaterEqual(expected, account.limit)


class NameTest(base.TestCase):
    def test_name(self):
        name = str(uuid.uuid4())
        self.assertEqual('compute1.example.org_nfv_ledger',
                         client.name_of('compute1.example.org', name))
        for length in range(180, 256):
            self.assertLessEqual(len(client.name_of('x' * length, name)), 200)
        self.assertNotEqual(
            client.name_of('x' * 200 + 'a', name),
            client.name_of('x' * 200 + 'b', str(uuid.uuid4())))
