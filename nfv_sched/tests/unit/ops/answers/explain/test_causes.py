# SPDX-License-Identifier: Apache-2.0

from nfv_sched.base import device_shortage
from nfv_sched.base import reasons
from nfv_sched.ops.answers.explain import causes
from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.answers.explain import rendering
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.model.verdicts import values
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.answers.explain import clouds
from nfv_sched.tests.unit.ops.answers.explain import test_explanation

_CPUS = reasons.Amount(reasons.Resource.DEDICATED_CPUS, 8)
_PAGES = reasons.Amount(reasons.Resource.PAGES, 4096, '1 GiB')
_UNTRUSTED = device_shortage.DeviceShortage(
    device_shortage.ShortageKind.NUMA, (device_shortage.DeviceNeed(
        1, 'VF', '', 'data', True, 'required'),), 0,
    (device_shortage.NearMiss(
        device_shortage.MissKind.TRUSTED, 2, 'VF', 'True', ('false',)),))
_SWITCH = 'with the virtual switch'
_DISABLED = clouds.lack('', values.PlacementNeed(
    'no trait COMPUTE_STATUS_DISABLED', 'forbidden_trait',
    traits=('COMPUTE_STATUS_DISABLED',)))
host = clouds.verdict


def pcpus(free):
    return clouds.lack('', values.PlacementNeed(
        'PCPU=8', 'resource', resources={'PCPU': 8}), free)


def short(free, *places, amount=_CPUS, **fields):
    return values.refusal(
        fields.pop('filter', 'AFilter'), shortage=reasons.Shortage(
            amount, free, places, **fields))


class FindTest(base.TimedTestCase):

    def find(self, *hosts, networks=()):
        return [(each.kind, each.hosts, each.nearest_host)
                for each in causes.find(hosts, networks)]

    def test_common_to_most(self):
        """A smaller need that is not met either counts with the larger."""
        found = causes.find((
            host('a', pcpus(4), short(2)), host('b', short(2, _SWITCH)),
            host('c', short(6, _SWITCH)),
            host('d', short(6, _SWITCH), short(0, filter='BFilter'))), ())
        each, = found
        self.assertEqual(
            ('shortage', 4, 'c', 'id of c', ('AFilter',)),
            (each.kind, each.hosts, each.nearest_host, each.nearest_host_id,
             each.filters))

    def test_least_demanding(self):
        """Of causes of equally many hosts."""
        self.assertEqual(
            [('placement', 2, 'b')], self.find(
                host('a', pcpus(4), short(2, _SWITCH)),
                host('b', pcpus(5), short(3, _SWITCH))))
        each, = causes.find((host('a', short(2, _SWITCH), short(4)),), ())
        self.assertEqual((), each.places)

    def test_each_host_once(self):
        """The most frequent first."""
        pages = short(1024, amount=_PAGES)
        self.assertEqual(
            [('disabled', 3, 'a'), ('shortage', 2, 'c'),
             ('shortage', 1, 'f')], self.find(
                host('a', _DISABLED, short(0)), host('b', short(1)),
                host('c', short(3), pages), host('d', _DISABLED),
                host('e', values.refusal(
                    'ComputeFilter', kind='disabled')),
                host('f', pages), host('passes')))

    def test_kinds(self):
        for failure, kind in (
                (short(0, _SWITCH, reasons.Place.NETWORKS,
                       amount=reasons.Amount(
                           reasons.Resource.NUMA_NODES, 1)), 'deployment'),
                (short(1, amount=reasons.Amount(
                    reasons.Resource.NUMA_NODES, 2)), 'shortage'),
                (values.refusal('F', raised=True), 'error'),
                (values.refusal('F'), 'filter'),
                (clouds.lack('cut off'), 'cut-off'), *[
                    (values.refusal('F', kind=kind), kind) for kind in (
                        'request', 'down',
                        'unmapped')]):
            self.assertEqual([(kind, 1, 'a')], self.find(host('a', failure)))
        self.assertEqual([('filter', 1, 'a')], self.find(
            host('a', removed_by='F')))


class SentenceTest(base.TimedTestCase):

    def sentences(self, *hosts, networks=()):
        return [each.text for each in causes.find(hosts, networks)]

    def test_shortages(self):
        for hosts, text in (
            ([host('a', short(2, _SWITCH, reasons.Place.NETWORKS))] * 1,
             'The only host, a: 8 free dedicated CPUs on one NUMA node with '
             'the virtual switch and near lan needed, it has 2.'),
            ((host('a', short(2)), host('b', short(1))),
             'Both hosts: 8 free dedicated CPUs on one NUMA node needed, the '
             'nearest host, a, has 2.'),
            ([host(name, short(
                0, amount=reasons.Amount(reasons.Resource.PCI_DEVICES, 2,
                                         'VF'), beside=(_CPUS, _PAGES)))
              for name in 'abc'],
             'All 3 hosts: 2 free VFs on one NUMA node that also has 8 free '
             'dedicated CPUs and 4096 MiB of free memory in pages of '
             '1 GiB needed, the nearest host, a, has none.'),
            ((host('a', short(0, amount=reasons.Amount(
                reasons.Resource.PCI_DEVICES, 1, 'VF'))), host('b')),
             'a: 1 free VF needed, it has none.'),
            ([host(name, short(0, amount=reasons.Amount(
                reasons.Resource.PCI_DEVICES, 1, 'VF'), devices=_UNTRUSTED))
              for name in 'ab'],
             'Both hosts: 1 free trusted VF on physnet data on one NUMA node '
             'needed under PCI NUMA policy required, 0 free on a; 2 free VFs '
             'are not trusted (set trusted in [pci] device_spec of the host, '
             'or use ports that need not be trusted).'),
            ((host('a', short(1, amount=reasons.Amount(
                reasons.Resource.NUMA_NODES, 2))), host('b')),
             'a: 2 NUMA nodes needed, it has 1.'),
            ((host('a', short(1, amount=reasons.Amount(
                reasons.Resource.NUMA_NODES, 2), beside=(_CPUS,))), host('b')),
             'a: 2 NUMA nodes with 8 free dedicated CPUs each needed, it has '
             '1.'),
            ((host('a', values.refusal(
                'AFilter', 'pages of 16 MiB needed, it has none',
                shortage=reasons.Shortage(reasons.Amount(
                    reasons.Resource.PAGE_SIZE, 1), 0))), host('b')),
             'a: pages of 16 MiB needed, it has none.'),
            ((host('a', short(0, _SWITCH, reasons.Place.NETWORKS,
                              amount=reasons.Amount(
                                  reasons.Resource.NUMA_NODES, 1))),) * 1,
             'The only host, a: no NUMA node is with the virtual switch and '
             'near lan.')):
            self.assertEqual([text], self.sentences(*hosts, networks=[
                snapshot.Network(id='n', physnet='lan')]))

    def test_networks_of_devices(self):
        """Those whose ports may be meant, by Neutron's names."""
        needed, = self.sentences(host('a', short(0, amount=reasons.Amount(
            reasons.Resource.PCI_DEVICES, 1, 'VF'), devices=_UNTRUSTED)),
            networks=[snapshot.Network(
                id=name, name=name, physnet=physnet, vnic_type=vnic_type)
                for name, physnet, vnic_type in (
                    ('core', 'data', 'direct'), ('ims', 'data', 'direct'),
                    ('mgmt', 'data', 'normal'), ('lan', 'lan', 'direct'))])
        self.assertIn('1 free trusted VF on physnet data (core, ims)', needed)

    def test_placement(self):
        for lack, text in (
                (pcpus(4), '8 PCPU needed by Placement, the nearest host, a, '
                 'has 4'),
                (pcpus(None), '8 PCPU needed by Placement, none has any'),
                (pcpus(8), '8 PCPU needed by Placement, which it does not '
                 'grant at once'),
                (_DISABLED, 'the compute service is disabled'),
                *[(clouds.lack('', values.PlacementNeed(
                    '', kind, **fields)), text) for kind, fields, text in (
                    ('trait', {'traits': ('X',)}, 'no trait X'),
                    ('forbidden_trait', {'traits': ('X',)},
                     'the trait X, which is forbidden'),
                    ('aggregate', {'aggregates': ('A', 'B')},
                     'not in aggregate A or B'),
                    ('forbidden_aggregate', {'aggregates': ('A',)},
                     'in aggregate A'),
                    ('tree', {'host': 'h'}, 'not host h'))],
                (clouds.lack('what the host lacks', values.PlacementNeed(
                    'VF=1, trait X', 'group', resources={'VF': 1},
                    traits=('X',))), 'what the host lacks'),
                (clouds.lack('', values.PlacementNeed(
                    'Placement refuses', 'unknown')),
                 'Placement refuses')):
            self.assertEqual([f'Both hosts: {text}.'], self.sentences(
                host('a', lack), host('b', lack)))

    def test_filters(self):
        for fields, text in (
                ({}, 'F refuses'),
                ({'policy': 'p=strict', 'text': 'x needed, y'},
                 'F refuses for p=strict, a for example: x needed, y'),
                ({'raised': True, 'text': 'raised E: x'}, 'F raised E: x'),
                ({'kind': 'request', 'text': 'bad key'},
                 'the request itself is wrong: bad key')):
            self.assertEqual([f'Both hosts: {text}.'], self.sentences(
                *[host(name, values.refusal('F', **fields))
                  for name in 'ab']))


class DeploymentTest(test_explanation.ExplanationTestCase):
    """The NUMA nodes near two things have none in common."""

    HOSTS = """\
hosts:
  - name: h
    count: 2
    numa_nodes: 4
    cores: 8
    memory: 32 GiB
    switch_nodes: [0, 1]
    shared_cores_per_node: 0
    physical_networks: {physnet0: [0], physnet1: [2]}
networks:
  lan: {physical_network: physnet0}
  data: {physical_network: physnet1}
flavors:
  f:
    vcpus: 4
    memory: 1 GiB
    extra_specs: {hw:cpu_policy: dedicated%s}
steps:
  - {boot: s, flavor: f, networks: [%s]}
"""
    POLICY = ', nfv:vswitch_numa_affinity: strict'

    def explain_server(self, specs, networks):
        cloud = self.recorded(self.HOSTS % (specs, networks))
        with start.started(cloud) as state:
            asked = subject.server(cloud, state, 's')
            return explanation.explain(state, asked)

    def test_no_node_in_common(self):
        for specs, networks, where, change in (
                (self.POLICY, 'data', 'with the virtual switch and near '
                 'physnet1', 'another nfv:vswitch_numa_affinity,'),
                ('', 'lan, data', 'near physnet0 and physnet1',
                 'more guest NUMA nodes (hw:numa_nodes),')):
            found = self.explain_server(specs, networks)
            cause, = found.causes
            self.assertEqual('deployment', cause.kind)
            self.assertEqual(f'Both hosts: no NUMA node is {where}.',
                             cause.text)
            self.assertIn(f'helps, only {change} other networks, or',
                          causes.deployment(cause))
            self.assertIn(causes.deployment(cause), rendering.text(
                found, found.hosts))
            # What it says of changes is so.
            texts = [each.text for each in found.changes]
            self.assertNotRegex(' '.join(texts), 'vCPU|GiB')
            self.assertRegex(' '.join(texts), 'nfv:vswitch|hw:numa_nodes')
