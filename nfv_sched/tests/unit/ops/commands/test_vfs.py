# SPDX-License-Identifier: Apache-2.0
"""Plans of servers of which a live migration detaches VFs."""

import dataclasses
import json

from nfv_sched.ops.run import values
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops.commands import test_plan_run
from nfv_sched.tests.unit.ops.run import migrating_nova

_PCI = """physical_networks: {data: [0, 1], whole: [0, 1]}, pci_devices: [
       {type: VF, node: 0, count: 3, physical_network: data},
       {type: PF, node: 0, count: 1, physical_network: whole},
       {type: VF, node: 1, count: 1, live_migratable: true}]"""
_NETWORKS = """\
networks:
  lan: {}
  fast: {physical_network: data, vnic_type: direct}
  whole: {physical_network: whole, vnic_type: direct-physical}
pci_aliases:
  nic: {type: VF, live_migratable: true}"""
HEAD = running.HEAD.replace(
    'pci_devices: [{type: VF, node: 0, count: 1}]', _PCI).replace(
        'pci_aliases:\n  nic: {type: VF}', _NETWORKS)
BOOTS = """\
- {boot: a, flavor: p1, networks: [fast, lan, fast], host: one}
- {boot: b, flavor: p2, networks: [lan], host: one}
- {boot: c, flavor: p1, networks: [whole], host: one}
- {boot: d, flavor: vf, host: one}
- {boot: e, flavor: p1, networks: [fast], host: one}
"""
#: Only if "b" moves to "three", one more server with four CPUs fits.
ROOM = """\
- {boot: a, flavor: p4, host: one}
- {boot: f, flavor: p4, host: one}
- {boot: b, flavor: p3, networks: [fast], host: two}
- {boot: c, flavor: p4, host: two}
- {boot: e, flavor: p4, host: three}
- {boot: d, flavor: p1, host: three}
"""


class PlansTest(test_plan_run.PlanRunTestCase, running.RunningTestCase):

    def save(self, steps=BOOTS, **states):
        cloud = self.running(steps=steps, head=HEAD)
        self.save_cloud(dataclasses.replace(cloud, servers=tuple([
            dataclasses.replace(each, state=states.get(
                each.name, each.state)) for each in cloud.servers])))

    def run_plan(self, *args, code=0):
        return self.exits(code, *args, '--from', self.in_folder('cloud'))[0]

    def test_not_cold(self):
        """One that cannot be migrated cold stays."""
        self.save(a='paused', e='stopped')
        document = json.loads(self.run_plan(
            'host', 'drain', 'one', '--cold-for-vfs', '-f', 'json', code=3))
        found = {each['server']: each for each in document['servers']}
        self.assertEqual(
            [(None, 'paused', 0), ('cold', 'stopped', 0)],
            [(found[name]['how'], found[name]['obstacle']['name'],
              found[name]['vfs_detached']) for name in 'ae'])

    def test_live_only(self):
        """A stopped server stays, as it can only be migrated cold."""
        self.save(e='stopped')
        for option, how in (('', 'cold'), ('--live-only', None)):
            found, out, _err = self.run_command(
                'host', 'drain', 'one', *[option] * (how is None), '-f',
                'json', '--from', self.in_folder('cloud'))
            servers = {each['server']: each
                       for each in json.loads(out)['servers']}
            self.assertEqual((how, 'stopped', 3 * (how is None)), (
                servers['e']['how'], servers['e']['obstacle']['name'], found))
        self.run_plan('host', 'drain', 'one', '--live-only', '--cold-for-vfs',
                      code=2)

    def test_avoided_host(self):
        """It is not emptied either, but for others to be."""
        self.save()
        self.run_plan('host', 'drain', 'one', '--avoid', 'one', code=2)
        document = json.loads(self.run_plan(
            'host', 'drain', '*', '--avoid', 'one', '-f', 'json'))
        self.assertEqual({'two', 'three'}, {
            host['host'] for each in document['rounds']
            for host in each['hosts']})

    def test_save(self):
        self.save()
        self.assertIn(
            f'\nSaved: {self.path}. To check it: nfv-sched plan run '
            f'{self.path} --dry-run --from {self.in_folder("cloud")}\n',
            self.run_plan('host', 'drain', 'one', '--save', self.path))

    def test_run(self):
        """Said before it is asked whether to begin."""
        plan = migrating_nova.document('a live two', 'b live two')
        plan['servers'][0]['vfs_detached'] = 2
        self.start(plan)
        out, _err = self.carry_out('--dry-run')
        self.assertEqual([
            '1/2 a: live migration from one to two, 2 VFs detached',
            '2/2 b: live migration from one to two', values.VFS_DETACHED],
            out.splitlines()[1:4])
        self.carry_out()
        out, _err = self.carry_out()
        self.assertNotIn(values.VFS_DETACHED, out)
