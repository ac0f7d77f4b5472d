# SPDX-License-Identifier: Apache-2.0
"""What tenants and operators read of refusals."""

import collections
import itertools
import re

from nova import exception
from nova import objects

from nfv_sched.filters import all_filters
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestReasons(base.FilterTestCase):

    def test_default(self):
        """How full hosts are and how many there are changes nothing."""
        self.config.conf.clear_override('expose_reasons', group='nfv_sched')
        for free in ([0], [1], [0, 1], [1, 0, 0]):
            hosts = [clouds.host(f'secret{number}', free={1: cpus})
                     for number, cpus in enumerate(free)]
            self.assertEqual(
                'No valid host was found. nfv:vswitch_numa_affinity=strict: 2 '
                'dedicated CPUs on one NUMA node with the virtual switch '
                'needed, no host has it',
                self.refusal(hosts, clouds.spec('strict')))
        # The log keeps it all.
        self.assertIn('best host: 1 free (3 hosts)', self.log.output)

    def test_default_on_a_broken_host(self):
        """What the host has reported stays with the operator."""
        self.config.conf.clear_override('expose_reasons', group='nfv_sched')
        host = clouds.host()
        host.numa_topology.cells[0].mempages = [
            objects.NUMAPagesTopology(size_kb=0, total=7, used=0)]
        text = self.refusal([host], clouds.spec('strict'))
        self.assertIn('NUMA topology: a readable record of the host needed, '
                      'no host has it', text)
        self.assertIn('memory pages of 0 KiB (1 host)', self.log.output)

    def test_mapped_away(self):
        self.assertIn(
            'the virtual switch on host NUMA node 0 needed '
            '(nfv:numa_node.0=0), it runs on 1',
            self.refusal([clouds.host()],
                         clouds.spec('strict', nodes={0: 0})))

    def test_bad_value(self):
        for enabled in ([self.topology], [self.vswitch]):
            self.assertIn("'always' is not one of strict, prefer",
                          self.refusal([clouds.host()],
                                       clouds.spec('always'), enabled))

    def test_unknown_key(self):
        """Refused by whichever filter comes first, with all kinds of keys."""
        for enabled in [[cls()] for cls in all_filters()] + [
                [cls() for cls in all_filters()]]:
            for numa in (True, False):
                for specs in ({}, {'hw:cpu_policy': 'dedicated'},
                              {'nfv:vswitch_numa_affinity': 'prefer'}):
                    specs = {'nfv:vswitch_affinity': 'strict', **specs}
                    self.assertEqual(
                        'No valid host was found. flavor: unknown key '
                        'nfv:vswitch_affinity, did you mean '
                        'nfv:vswitch_numa_affinity',
                        self.refusal(
                            [clouds.host('a'), clouds.host('b', nodes=1)],
                            clouds.spec(numa=numa, extra_specs=specs),
                            enabled))

    def test_unknown_keys_fit_into_a_fault(self):
        keys = {'nfv:' + 'vswitch_numa_affinity' * 12: 'strict',
                **{f'nfv:\U0001f4a5{number}' * 9: '' for number in range(999)}}
        text = self.refusal([clouds.host()], clouds.spec(extra_specs=keys))
        self.assertIn('unknown key', text)
        self.assertLessEqual(len(text.encode()), 255)

    def test_no_hosts_to_begin_with(self):
        self.assertEqual([], self.passing([], clouds.spec('strict')))


class TestDefault(base.JointTestCase):
    def test_default_reason_has_the_numbers_of_the_request_only(self):
        """Whatever the host has, and has left."""
        self.flags(expose_reasons='policy')
        seen = collections.Counter()
        for cells, nodes, free, devices, switch, labels in itertools.product(
                (1, 2), (1, 3), (5, 6, 11), (4, 9, None), (None, (0,), (0, 1)),
                (True, False)):
            hosts = [clouds.host(
                f'host{number}', nodes=nodes, cpus=13, switch=switch and [
                    node for node in switch if node < nodes],
                node_labels=labels, free={number % nodes: free},
                devices=devices and {nodes - 1: devices})
                for number in range(2)]
            for mapped in ({}, {0: 1}):
                try:
                    self.passing(hosts, clouds.spec(
                        'strict', cells=cells, vcpus=7, nodes=mapped,
                        extra_specs=base.PCI_STRICT,
                        devices=[clouds.pci_request(8, 'legacy')]))
                except exception.NoValidHost as error:
                    text = error.kwargs['reason']
                else:
                    continue
                seen[text] += 1
                # What was asked for, in words and in extra specs.
                for own in ('nfv:numa_node.0=1', 'nfv_node0, nfv_node1',
                            '7 dedicated CPUs', '7 free dedicated CPUs',
                            '8 VFs', '8 free VFs', 'host NUMA node 1 ',
                            f'{cells} NUMA nodes', f'{cells} host NUMA nodes'):
                    text = text.replace(own, '')
                self.assertNotRegex(re.sub(r'\+\d+ more', '', text), r'\d')
        self.assertGreater(len(seen), 10)
