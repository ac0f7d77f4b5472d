# SPDX-License-Identifier: Apache-2.0
"""What guests give back, by their figures alone."""

from nfv_sched.ledger import inventory
from nfv_sched.limits import names
from nfv_sched.limits import usage
from nfv_sched.tests import base

HELD = names.Held(3, {names.PORTS: 4, names.RULES: 40})


def guest(ports=0, rules=0):
    return usage.GuestUsage(tuple(f'port{n}' for n in range(ports)), rules)


class LookTest(base.TestCase):
    """When a guest has been seen for long enough."""

    def look(self, *sights, held=HELD):
        sight = None
        for number, seen in enumerate(sights, 1):
            if seen is not None:
                sight = inventory.look(sight, held, seen, number)
        return sight

    def test_rounds_in_a_row(self):
        one = guest(1, 10)
        for count in range(1, inventory.ROUNDS + 2):
            self.assertEqual(count >= inventory.ROUNDS,
                             self.look(*[one] * count).due, count)

    def test_again_in_the_same_round(self):
        sight = self.look(guest(1), guest(1))
        for _ in range(5):
            sight = inventory.look(sight, HELD, guest(1), 2)
        self.assertFalse(sight.due)
        self.assertTrue(inventory.look(sight, HELD, guest(1), 3).due)

    def test_never_bound(self):
        self.assertFalse(self.look(*[guest()] * 10).due)

    def test_all_gone(self):
        self.assertTrue(self.look(guest(4), *[guest()] * 3).due)
        self.assertFalse(self.look(guest(4), *[guest()] * 2).due)

    def test_ports_change(self):
        one, two = guest(1), guest(2)
        self.assertFalse(self.look(one, one, two, two).due)
        self.assertFalse(self.look(two, two, one, two, two).due)
        # As many, but others.
        other = usage.GuestUsage(('other',), 0)
        self.assertFalse(self.look(one, one, other, other).due)
        self.assertTrue(self.look(one, one, other, other, other).due)

    def test_rules_change(self):
        self.assertFalse(self.look(guest(1, 5), guest(1, 5), guest(1, 6)).due)

    def test_round_missed(self):
        one = guest(1)
        self.assertFalse(self.look(one, one, None, one, one).due)
        self.assertTrue(self.look(one, one, None, one, one, one).due)

    def test_other_allocation(self):
        """Also one of the same size that has been made anew."""
        for held in (HELD._replace(generation=4),
                     HELD._replace(resources={names.PORTS: 4})):
            sight = self.look(*[guest(1)] * 5)
            sight = inventory.look(sight, held, guest(1), 6)
            self.assertFalse(sight.due)
            sight = inventory.look(
                self.look(*[guest(1)] * 5), held, guest(), 6)
            for number in range(7, 12):
                sight = inventory.look(sight, held, guest(), number)
            # It was here under another allocation.
            self.assertFalse(sight.due)


class KeptTest(base.TestCase):
    def test_kept(self):
        for expected, resources, seen, rules_known in (
            ((4, 40), (4, 40), guest(4, 40), True),
            ((4, 40), (4, 40), guest(5, 50), True),
            ((1, 10), (4, 40), guest(1, 10), True),
            ((1, 40), (4, 40), guest(1, 10), False),
            ((1, 0), (4, 40), guest(1, 0), True),
            ((0, 0), (4, 40), guest(), True),
            ((0, 3), (0, 40), guest(2, 3), True),
            ((2, 0), (4, 0), guest(2, 3), True),
        ):
            held = {name: amount for name, amount in zip(
                (names.PORTS, names.RULES), resources) if amount}
            kept = inventory.used_part(
                inventory.look(None, names.Held(1, held), seen, 1),
                rules_known)
            self.assertEqual(
                expected, (kept.get(names.PORTS, 0),
                           kept.get(names.RULES, 0)))
            self.assertNotIn(0, kept.values())

    def test_other_classes(self):
        self.assertEqual({'VGPU': 2}, inventory.used_part(inventory.look(
            None, names.Held(1, {'VGPU': 2, names.PORTS: 1}), guest(), 1),
            True))

    def test_nodes(self):
        """Without any pins the record of the server was not read."""
        node, other = names.node_cpus(0), names.node_cpus(1)
        for pins, left in (({}, 4), ({node: 2}, 2), ({node: 9}, 4),
                           ({other: 1}, 0)):
            seen = usage.GuestUsage((), 0, pins)
            self.assertEqual(left, inventory.used_part(inventory.look(
                None, names.Held(1, {node: 4}), seen, 1), True).get(node, 0))
