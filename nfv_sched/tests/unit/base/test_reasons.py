# SPDX-License-Identifier: Apache-2.0
"""What becomes of refusals when somebody reads them."""

from nfv_sched.base import reasons
from nfv_sched.tests import base

# Between what a host lacks and what cannot be enforced.
POLICY = reasons.CAPACITY + 1


def _capacity(free):
    return reasons.Reason(
        reasons.CAPACITY, 'NUMA topology',
        '8 dedicated CPUs on one NUMA node needed', f'{free} free', free)


class TestText(base.TestCase):

    def test_summary(self):
        """It has the best host; a bad request is told once."""
        need = 'NUMA topology: 8 dedicated CPUs on one NUMA node needed'
        bad = reasons.Reason(reasons.REQUEST, 'flavor', 'nonsense')
        for refused, text in (
                ([_capacity(2), _capacity(6), _capacity(4)],
                 f'{need}, best host: 6 free (3 hosts)'),
                ([_capacity(2)], f'{need}, 2 free (1 host)'),
                ([bad] * 5, 'flavor: nonsense'), ([], '')):
            self.assertEqual(text, reasons.summary_text(refused))

    def test_fixed_order(self):
        vswitch = reasons.Reason(POLICY, 'vswitch', 'a switch')
        text = reasons.summary_text([vswitch, vswitch, _capacity(1)])
        self.assertLess(text.index('NUMA topology'), text.index('vswitch'))
        self.assertIn('(2 hosts)', text)

    def test_fits_into_a_fault(self):
        many = [reasons.Reason(POLICY, f'policy {i}', 'n' * 60)
                for i in range(20)]
        named = [(f'host{i}', reason) for i, reason in enumerate(many)]
        policy, flavor = ([reasons.Reason(order, 'p', 'w\u00f6rd ' * 100)]
                          for order in (POLICY, reasons.REQUEST))
        for text, end in (
                (reasons.summary_text(many), r'\+\d+ more'),
                (reasons.hosts_text(named), r'\+\d+ hosts'),
                (reasons.policy_text(many),
                 r'; \+\d+ more; no host has all of it'),
                # Clipped at a word.
                (reasons.policy_text(policy),
                 r'w\u00f6rd\.\.\., no host has it'),
                (reasons.summary_text(flavor), r'w\u00f6rd\.\.\.')):
            self.assertLessEqual(len(text.encode()), reasons.MAX_BYTES)
            self.assertRegex(text, f'{end}$')

    def test_policy_does_not_depend_on_hosts(self):
        vswitch = reasons.Reason(
            POLICY, 'vswitch', 'a switch', 'none')
        for refused in ([_capacity(2), vswitch],
                        [vswitch, _capacity(7), _capacity(0), vswitch]):
            self.assertEqual(
                'NUMA topology: 8 dedicated CPUs on one NUMA node needed; '
                'vswitch: a switch; no host has all of it',
                reasons.policy_text(refused))
        # Of two needs of one policy the more frequent is not the first.
        memory = reasons.Reason(reasons.CAPACITY, 'NUMA topology', '9 MiB')
        texts = {reasons.policy_text([_capacity(1)] * few + [memory] * many)
                 for few, many in ((1, 1), (1, 2), (2, 1))}
        self.assertEqual(1, len(texts), texts)

    def test_policy_leaves_out_what_another_need_includes(self):
        cpus = reasons.Amount(reasons.Resource.DEDICATED_CPUS, 8)
        device = reasons.Amount(reasons.Resource.PCI_DEVICES, 1, 'VF')

        def reason(need, order, amount, *places, beside=()):
            return reasons.Reason(
                order, 'p', need, shortage=reasons.Shortage(
                    amount, 0, places, beside))

        stock = reason('cpus', reasons.CAPACITY, cpus)
        switch = reason('switch', POLICY, cpus, 'with the switch')
        both = reason('both', POLICY, device, 'with the switch',
                      beside=(cpus,))
        place = reason('place', POLICY + 1, cpus, 'with osd')
        nic = reason('nic', POLICY, device._replace(noun='PF'))
        same = reason('same', POLICY, cpus)
        for refused, text in (
                ([stock, switch], 'p: switch, no host has it'),
                ([stock, switch, both], 'p: both, no host has it'),
                ([stock, same], 'p: same, no host has it'),
                ([switch, place], 'p: switch; p: place; no host has all of '
                                  'it'),
                ([both, nic], 'p: both; p: nic; no host has all of it')):
            for order in (1, -1):
                self.assertEqual(text, reasons.policy_text(refused[::order]))

    def test_hosts_that_lack_least_come_first(self):
        """In parts of what is needed: CPUs and MiB cannot be compared."""
        pages = reasons.Amount(reasons.Resource.PAGES, 8192)
        cpus = reasons.Amount(reasons.Resource.DEDICATED_CPUS, 8)
        named = [
            (host, reasons.Reason(
                reasons.CAPACITY, 'p', 'n', '', free,
                shortage=amount and reasons.Shortage(amount, free)))
            for host, amount, free in (
                ('none', None, 0), ('pages', pages, 4096), ('two', cpus, 2),
                ('six', cpus, 6))]
        text = reasons.hosts_text(named)
        self.assertEqual(['six', 'pages', 'two', 'none'], [
            part.partition(':')[0] for part in text.split('; ')])

    def test_policy_tells_own_business(self):
        own = reasons.Reason(
            reasons.VSWITCH_PORTS, 'vNICs', '9 needed', 'at most 8 allowed',
            own=True)
        self.assertEqual('vNICs: 9 needed, at most 8 allowed',
                         reasons.policy_text([own]))
        self.assertEqual(
            'vNICs: 9 needed, at most 8 allowed; NUMA topology: 8 dedicated '
            'CPUs on one NUMA node needed, no host has it',
            reasons.policy_text([_capacity(3), own]))
        bad = reasons.Reason(reasons.REQUEST, 'flavor', 'nonsense')
        self.assertEqual('flavor: nonsense', reasons.policy_text([bad, own]))

    def test_nothing_refused(self):
        self.assertEqual('', reasons.policy_text([]))
        self.assertEqual('', reasons.hosts_text([]))
