# SPDX-License-Identifier: Apache-2.0

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import drain
from nfv_sched.tests.unit.ops.answers.plans import running

_SWITCH = 'nfv:vswitch_numa_affinity'
_PCI = 'hw:pci_numa_affinity_policy'
#: Policies that both want NUMA node 0.
_BOTH = f"""\
  both:
    vcpus: 1
    memory: 256 MiB
    extra_specs:
      hw:cpu_policy: dedicated
      pci_passthrough:alias: 'nic:1'
      {_SWITCH}: strict
      {_PCI}: required
"""
# Claims of moves know the policy of the alias only.
_HEAD = running.HEAD.replace(
    'nic: {type: VF}', 'nic: {type: VF, numa_policy: preferred}') + _BOTH
#: NUMA node 0 of hosts two and three is full.
_FULL = ('w strict two', 'x strict two', 'y strict three', 'z strict three')


class RelaxingTest(running.RunningTestCase):

    def relaxed(self, *servers, **kwargs):
        """Return the policies that keep server "a" on host one, by host."""
        cloud = self.running(*servers, head=_HEAD)
        self.found = drain.plan(
            cloud, 'one', document.DrainOptions(relax=True), **kwargs)
        guest, = self.found.staying
        return [(move.host, *[
            (policy.policy, policy.becomes, policy.kept)
            for policy in move.policies]) for move in guest.relaxations]

    def test_two_together(self):
        (_host, *changes), = self.relaxed('a both one', *_FULL)
        self.assertEqual([
            (_PCI, 'preferred', None),
            (_SWITCH, 'prefer', 'no')], sorted(
                (*becomes.split('='), kept)
                for _policy, becomes, kept in changes))

    def test_does_not_help(self):
        self.assertEqual([], self.relaxed(
            'a strict one', *_FULL, 's p4 two', 't p4 three'))
        self.assertEqual([], self.relaxed(
            'a p4 one', 's p4 two', 't p4 two', 'u p4 three', 'v p4 three'))

    def test_server_group(self):
        """It is obeyed in any case."""
        (host, _change), = self.relaxed(
            'a strict one apart', *_FULL, 'b p1 two apart')
        self.assertEqual('three', host)
