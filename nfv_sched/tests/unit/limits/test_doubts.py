# SPDX-License-Identifier: Apache-2.0
"""Projects that lose much at once, and those beside them.

Random clouds of several projects, read again and again by the real reader,
which gets its items from here and not over HTTP.
"""

import random
import types

import fixtures

from nfv_sched.ledger import neutron
from nfv_sched.nova import scheduler
from nfv_sched.tests.unit.limits import base

SEQUENCES = 60


class Reader(neutron.Reader):
    """A reader of a made-up cloud: resource -> items."""

    def __init__(self, conf, doubts, cloud):
        super().__init__(conf, doubts=doubts, network=object())
        self.cloud = cloud

    def items(self, resource, fields, filters=(), paged=True, optional=False,
              key=None):
        yield from self.cloud.get(resource, ())


class DoubtsTestCase(base.NeutronTestCase):
    """A cloud whose readings are made when a test says so."""

    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.limits.usage.time', types.SimpleNamespace(
                monotonic=lambda: self.now, time=lambda: self.now)))
        self.flags(max_snapshot_age=300.0)
        self.ports = {}
        self.rules = {}
        self.deleted = set()
        self.useFixture(fixtures.MockPatchObject(
            scheduler, 'deleted_servers', self.deleted.intersection))
        self.useFixture(fixtures.MockPatchObject(
            scheduler, 'has_connected_servers', return_value=True))
        self.restart()

    def restart(self):
        """Begin with a first reading."""
        self.doubts = base.TrustingCheck()
        self.snapshot = None

    def add(self, project, name, host, groups=(), server=None,
            owner='compute:nova'):
        self.ports[name] = {
            'id': name, 'device_owner': owner,
            'device_id': server or f'server-{name}', 'binding:host_id': host,
            'binding:vnic_type': 'normal', 'security_groups': list(groups),
            'project_id': project}

    def read(self, seconds=0.0):
        """Read the cloud some time later; returns the snapshot."""
        self.now += seconds
        self.snapshot = self.reader(self.doubts).read(self.snapshot)
        return self.snapshot

    def reader(self, doubts):
        groups = {group for port in self.ports.values()
                  for group in port['security_groups']}
        return Reader(neutron.CONF, doubts, {
            'ports': list(self.ports.values()),
            'security-groups': [{'id': group} for group in sorted(groups)],
            'security-group-rules': [
                {'id': f'{group}-{number}', 'security_group_id': group}
                for group, count in self.rules.items()
                for number in range(count)]})

    def raw(self):
        """The snapshot of what Neutron has, without any doubt."""
        return self.reader(base.TrustingCheck()).read()


class ProjectTest(DoubtsTestCase):
    """One project has most of the cloud, and another is its neighbour."""

    def setUp(self):
        super().setUp()
        self.rules.update(big=100, small=2)
        for number in range(30):
            self.add('big', f'b{number}', 'host1', ['big'])
        for number in range(4):
            self.add('small', f's{number}', 'host2', ['small'])
        self.read()

    def figures(self):
        return [(host.vswitch_ports, host.rules) for host in map(
            self.snapshot.host, ('host1', 'host2'))]

    def test_rules(self):
        """Of its rules all or most are removed, or ports get other groups."""
        for title, change in (
            ('all', lambda: self.rules.update(big=0)),
            ('most', lambda: self.rules.update(big=10)),
            ('group', lambda: [port.update(security_groups=[])
                               for name, port in self.ports.items()
                               if name.startswith('b')]),
        ):
            with self.subTest(title):
                self.rules.update(big=100, small=2)
                for name in 'b0', 's9':
                    self.ports.pop(name, None)
                for number in range(30):
                    self.add('big', f'b{number}', 'host1', ['big'])
                self.restart()
                self.read()
                before = self.figures()
                change()
                self.add('small', 's9', 'host2', ['small'])
                self.rules['small'] = 3
                for _ in range(5):
                    self.read(20)
                    self.assertEqual([before[0], (5, 15)], self.figures())
                self.read(80)
                self.assertEqual([
                    (30, self.raw().host('host1').rules), (5, 15)],
                    self.figures())

    def test_ports_come_and_go(self):
        """What a project had first is kept, not all that it had since."""
        for number in range(25):
            del self.ports[f'b{number}']
        self.read(20)
        for turn in range(4):
            self.add('big', f'n{turn}', 'host1', ['big'])
            self.read(5)
            self.assertEqual((31, 3100), self.figures()[0])
            del self.ports[f'n{turn}']
            self.read(5)
            self.assertEqual((30, 3000), self.figures()[0])

    def test_deleted_servers(self):
        """Nova explains that the ports are gone."""
        for number in range(25):
            del self.ports[f'b{number}']
            self.deleted.add(f'server-b{number}')
        self.read(20)
        self.assertEqual([(5, 500), (4, 8)], self.figures())

    def test_everybody(self):
        """What most projects have lost looks like a defect."""
        for name in list(self.ports):
            if name not in ('b0', 's0'):
                del self.ports[name]
        self.assertRaises(neutron.ImplausibleError, self.read, 20)
        self.rules.update(big=10, small=0)
        self.assertRaises(neutron.ImplausibleError, self.read, 20)

    def test_only_project(self):
        """Nothing shows that Neutron still has others."""
        for name in list(self.ports):
            if name.startswith('s'):
                del self.ports[name]
        self.restart()
        self.read()
        for number in range(25):
            del self.ports[f'b{number}']
        self.assertRaises(neutron.ImplausibleError, self.read, 20)

    def test_services(self):
        """Ports of Neutron itself are no project's."""
        for number in range(40):
            self.add('', f'd{number}', 'host1', owner='network:dhcp')
        self.restart()
        self.read()
        for number in range(39):
            del self.ports[f'd{number}']
        self.assertRaises(neutron.ImplausibleError, self.read, 20)

    def test_log(self):
        """One line for each project, and one when it is believed."""
        self.rules['big'] = 0
        for _ in range(9):
            self.read(20)
        text = 'What Neutron shows of a project is not believed'
        self.assertEqual(1, self.log.output.count(text))
        self.assertEqual(1, self.log.output.count('and is believed: Project '
                                                  'big: '))


class SequencesTest(DoubtsTestCase):
    """Whatever one project does, nobody else's figures are of before."""

    PROJECTS = tuple(f'p{number}' for number in range(5))

    def populate(self, rng):
        self.ports.clear()
        self.rules.clear()
        for project in self.PROJECTS:
            self.rules[project] = rng.randint(1, 20)
            for number in range(
                    rng.randint(40, 80) if project == 'p0'
                    else rng.randint(1, 5)):
                self.add(project, f'{project}-{number}',
                         rng.choice(('host1', 'host2')), [project])

    def change(self, rng):
        """The first project does much; the others a little, and no harm."""
        own = [name for name in self.ports if name.startswith('p0')]
        event = rng.choice(('rules', 'ports', 'rename', 'more', 'nothing'))
        if event == 'rules':
            self.rules['p0'] = rng.choice((0, 1, 20))
        elif event == 'ports':
            for name in rng.sample(own, len(own) * rng.randint(0, 4) // 4):
                del self.ports[name]
        elif event == 'rename':
            for name in own:
                self.ports[name].update(
                    device_owner=rng.choice(('', 'compute:nova')),
                    device_id=rng.choice(('', 'server-p1-0')))
        elif event == 'more':
            for _ in range(rng.randint(1, 40)):
                self.add('p0', f'p0-{rng.random()}',
                         rng.choice(('host1', 'host2')), ['p0'])
        project = rng.choice(self.PROJECTS[1:])
        self.add(project, f'{project}-{rng.random()}', 'host1', [project])

    def of_others(self, snapshot):
        """The ports of the other projects, and their rules."""
        return {name: (port, snapshot.rules_of(port.security_groups))
                for name, port in snapshot.ports.items()
                if port.project != 'p0'}

    def test_sequences(self):
        doubted = 0
        for seed in range(SEQUENCES):
            rng = random.Random(seed)
            self.populate(rng)
            self.restart()
            self.read()
            for _ in range(25):
                self.change(rng)
                snapshot, raw = self.read(rng.choice((1, 20, 60))), self.raw()
                self.assertEqual(
                    self.of_others(raw), self.of_others(snapshot), seed)
                for name in ('host1', 'host2'):
                    shown, true = snapshot.host(name), raw.host(name)
                    self.assertGreaterEqual(shown.vswitch_ports,
                                            true.vswitch_ports, seed)
                    self.assertGreaterEqual(shown.rules, true.rules, seed)
                    doubted += shown != true
                    # The numbers are those of the ports.
                    ports = [port for port in snapshot.ports.values()
                             if port.host == name]
                    self.assertEqual(
                        (len(ports), sum(
                            snapshot.rules_of(port.security_groups)
                            for port in ports)),
                        (shown.vswitch_ports, shown.rules), seed)
            # What stays for long enough is believed.
            for _ in range(4):
                self.read(100)
            self.assertEqual(dict(self.raw().hosts),
                             dict(self.snapshot.hosts), seed)
        self.assertGreater(doubted, SEQUENCES)
