# SPDX-License-Identifier: Apache-2.0

"""What is wrong with a file is said with file, line and field."""

import os
import pathlib
import tempfile

from nfv_sched.base import files
from nfv_sched.ops.cloud.cloud_file import loader
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import validation
from nfv_sched.ops.cloud import values
from nfv_sched.tests.unit.ops.simulator import base

# Line numbers below count on this.
GOOD = """\
hosts:
  - name: a
    cores: 8
    memory: 32 GiB
flavors:
  f:
    vcpus: 2
    memory: 1 GiB
    extra_specs:
      hw:cpu_policy: dedicated
networks:
  n: {tunneled: true}
steps:
  - boot: s
    flavor: f
    networks: [n]
"""

# (text to replace, replacement, what the problem must be)
BAD = [
    # not YAML
    ('cores: 8', 'cores: [8', 'cloud.yaml:4: not valid YAML:'),
    ('cores: 8', 'cores: &x [*x]',
     'cloud.yaml:3: not valid YAML: an alias that contains itself'),
    ('cores: 8', '\tcores: 8', 'cloud.yaml:3: not valid YAML:'),
    ('cores: 8', 'cores: !!python/object:os.system 8',
     'cloud.yaml:3: not valid YAML: could not determine a constructor'),
    ('cores: 8', 'cores: \x07', 'cloud.yaml:3: not text: the character'),
    ('cores: 8', 'cores: 8\n    pages: 5',
     'cloud.yaml:4: hosts[0].pages: must be an object or a list, not 5'),
    ('steps:', '---\nsteps:', 'not valid YAML: but found another document'),
    ('cores: 8', 'cores: 8\n    cores: 9',
     "cloud.yaml:4: not valid YAML: the key 'cores' is given twice"),
    ('boot: s', r'boot: "\ud800"',
     'not valid YAML: a text with half of a character'),
    ('cores: 8', r'"\udfff": 8',
     'cloud.yaml:3: not valid YAML: a text with half of a character'),
    ('cores: 8', '[1, 2]: 8', 'cloud.yaml:3: not valid YAML: a key that'),
    # PCI devices
    ('cores: 8', 'cores: 8\n    pci_devices: [{type: VF}]',
     "cloud.yaml:4: hosts[0].pci_devices[0]: 'node' is missing"),
    ('cores: 8', 'cores: 8\n    pci_devices: [{type: VF, node: 2}]',
     'hosts[0].pci_devices[0].node: there is no NUMA node 2; the host has 2'),
    ('cores: 8', 'cores: 8\n    pci_devices: [{type: VF, node: 0, vfs: 2}]',
     'vfs: is for devices of the type PF'),
    ('cores: 8', 'cores: 8\n    pci_devices: [{type: PF, node: 0, '
     "vendor: 'xyz'}]", 'must be a PCI ID of four hexadecimal digits, not'),
    ('cores: 8', 'cores: 8\n    pci_devices: [{type: VF, node: 0, '
     'count: 500}]', 'a PF has at most 248 VFs'),
    ('hosts:\n  - name: a', 'pci_in_placement: true\nhosts:\n  - name: a\n'
     '    pci_devices: [{type: PF, node: 0, vfs: 2}]',
     'vfs: Nova does not take a PF and its VFs together'),
    ('cores: 8', 'cores: 8\n    pci_devices: [{type: PF, node: 0, '
     'count: 16, vfs: 240}, {type: PF, node: 0, vfs: 240}]',
     'cloud.yaml:4: hosts[0].pci_devices: no host has more than 4096 devices'),
    ('cores: 8', 'cores: 8\n    pci_devices: [{type: standard, node: 0, '
     'count: 513}]',
     'hosts[0].pci_devices: 513 pools of devices; no host has more than 512'),
    ('flavors:', 'options: {pci: {alias: []}}\npci_aliases: {}\nflavors:',
     'options.pci.alias: cannot be combined with pci_aliases'),
    ('n: {tunneled: true}', 'n: {vnic_type: direct}',
     'networks.n.vnic_type: needs a physical_network, or tunneled'),
    ('n: {tunneled: true}', 'n: {tunneled: true, trusted: true}',
     'networks.n.trusted: is for other vnic_types than normal'),
    ('cores: 8', 'cores: 8\n    pages: {1G: [1, 2, 3]}',
     'hosts[0].pages: has 3 values, but there are 2 NUMA nodes'),
    ('cores: 8', 'cores: 8\n    pages: [{1G: [1, 2]}, {}]',
     'hosts[0].pages: has a list within a list'),
    ('n: {tunneled: true}', 'n: {numa_policy: required}',
     'networks.n.numa_policy: is for other vnic_types than normal'),
    ('n: {tunneled: true}\nsteps:\n  - boot: s', 'n: {physical_network: p, '
     'vnic_type: direct}\nsteps:\n  - boot: s\n    multi_create: true',
     'steps[0].networks[0]: a request for several servers cannot have'),
    ('networks: [n]', 'expect: {pci_devices: {any: 1}}',
     "expect.pci_devices.any: 'any' is neither a NUMA node nor none"),
    ('networks: [n]', 'expect: {pci: near}',
     "must be 'local', 'partial' or 'remote', not 'near'"),
    # networks
    ('cores: 8', 'cores: 8\n    dhcp_servers: -1', 'must be 0 or more'),
    ('cores: 8', 'cores: 8\n    routers: {ports: 2}', "'count' is missing"),
    ('cores: 8', 'cores: 8\n    routers: many',
     'must be a whole number, not'),
    ('hosts:\n  - name: a', 'network_service: ovn\nhosts:\n  - name: a\n'
     '    dhcp_servers: 1', 'with OVN the switch of each host answers DHCP'),
    ('hosts:', 'network_service: linuxbridge\nhosts:',
     "must be 'ovs', 'ovn' or 'none', not"),
    ('steps:', 'security_groups: {web: {ingres: 1}}\nsteps:',
     "did you mean 'ingress'?"),
    ('[n]', '[n]\n    security_groups: [wbe]\nsecurity_groups: {web: {}}',
     "did you mean 'web'?"),
    ('[n]', '[n]\n  - {attach: t, network: n}', "no server named 't'"),
    ('[n]', '[n]\n  - {detach: s}', "'network' is missing"),
    ('[n]', '[n]\n  - {attach: s, network: m}', "no network named 'm'"),
    ('{tunneled: true}\nsteps:', '{physical_network: p, vnic_type: direct}\n'
     'steps:\n  - {boot: t, flavor: f}\n  - {attach: t, network: n}',
     'steps[1].network: ports of SR-IOV'),
    ('[n]', '[n]\n  - neutron: gone',
     "must be 'up', 'stale' or 'down', not"),
    ('[n]', '[n]\n    expect: {servers: {s: {rules: {a: 4}}}}',
     'unknown key'),
    # keys
    ('cores: 8', 'coers: 8',
     "cloud.yaml:3: hosts[0].coers: unknown key; did you mean 'cores'?"),
    ('boot: s', 'bot: s',
     "cloud.yaml:14: steps[0]: has no known action; did you mean 'boot'?"),
    ('boot: s', 'boot: s\n    delete: s',
     'cloud.yaml:14: steps[0]: has more than one action: boot, delete'),
    # types and ranges
    ('cores: 8', 'cores: eight',
     "cloud.yaml:3: hosts[0].cores: must be a whole number, not 'eight'"),
    ('cores: 8', 'cores:',
     'hosts[0].cores: must be a whole number, not nothing'),
    ('cores: 8', 'cores: [8, x]',
     "hosts[0].cores[1]: must be a whole number, not 'x'"),
    ('32 GiB', '[]', 'hosts[0].memory: must not be empty'),
    ('32 GiB', '1.5',
     'hosts[0].memory: must be a whole number or text, not 1.5'),
    ('32 GiB', '-1', 'hosts[0].memory: must be 0 or more, not -1'),
    ('cores: 8', 'cores: 8\n    providers: [{name: g, '
     'inventories: {vgpu: 1}}]',
     "hosts[0].providers[0]: 'vgpu' is not the name of a resource class"),
    ('cores: 8', 'cores: 8\n    providers: [{name: g, inventories: '
     '{VGPU: {total: 1, reserved: 2}}}]',
     'hosts[0].providers[0].inventories.VGPU: 2 reserved of 1'),
    ('cores: 8', 'cores: 8\n    providers: [{name: g, '
     'inventories: {VGPU: 1}}, {name: g, inventories: {VGPU: 1}}]',
     "hosts[0].providers[1].name: 'g' is there already"),
    ('cores: 8', 'cores: 0', 'hosts[0].cores: no NUMA node has any'),
    ('vcpus: 2', 'vcpus: -1', 'cloud.yaml:7: flavors.f.vcpus: must be 1 or'),
    # Others would fill the memory.
    ('vcpus: 2', 'vcpus: 65536',
     'cloud.yaml:7: flavors.f.vcpus: must be 65535 or less, not 65536'),
    ('cores: 8', 'cores: 1000000000',
     'cloud.yaml:3: hosts[0].cores: the host would have 2000000000 CPUs; no '
     'host has more than 65535'),
    ('cores: 8', f'cores: {[8] * 65}',
     'cloud.yaml:3: hosts[0].cores: has 65 values; no host has more than 64 '
     'NUMA nodes'),
    ('cores: 8', 'cores: 8\n    routers: {count: 100000, ports: 100000}',
     'cloud.yaml:4: hosts[0].routers: the host would have 10000000000 ports '
     'of the virtual switch; no host has more than 100000'),
    ('cores: 8', 'cores: 8\n    other_ports: 1\n    dhcp_servers: 100000',
     'cloud.yaml:5: hosts[0].dhcp_servers: the host would have 100001 ports'),
    ('cores: 8', 'cores: 8\n    dhcp_servers: 100000\n    count: 1000',
     'cloud.yaml:4: hosts[0].dhcp_servers: has more than 1048576 ports, DHCP '
     'servers and routers; --max-file-size raises the limit, now 128 MiB'),
    ('32 GiB', '32 Gb', "cloud.yaml:4: hosts[0].memory: '32 Gb' is not a si"),
    ('32 GiB', '1000.0001 KiB', 'hosts[0].memory:'),
    ('cores: 8', 'cores: 8\n    pages: {3M: 1}',
     "cloud.yaml:4: hosts[0].pages.3M: '3M' is not a page size"),
    ('cores: 8', 'cores: 8\n    cpu_allocation_ratio: 0',
     'cpu_allocation_ratio: must be more than 0'),
    ('cores: 8', 'cores: 8\n    cpu_allocation_ratio: .inf',
     'cpu_allocation_ratio: must be 10000.0 or less'),
    # what does not go together
    ('cores: 8', 'cores: 2',
     'cloud.yaml:3: hosts[0].cores: NUMA node 0 has 2 cores, but 1 for the '
     'platform, 2 for the virtual switch and 0 shared ones are 3'),
    ('cores: 8', 'cores: [8, 8]\n    numa_nodes: 3',
     'cloud.yaml:3: hosts[0].cores: has 2 values, but there are 3'),
    ('cores: 8', 'cores: 8\n    pages: {1G: 33}',
     'cloud.yaml:4: hosts[0].pages: the pages of NUMA node 0 take 33792 MiB'),
    ('cores: 8', 'cores: 8\n    reserved_pages: {1G: 1}',
     'hosts[0].reserved_pages: 1 pages of 1048576 KiB are reserved'),
    ('cores: 8', 'cores: 8\n    reserved_memory: 65 GiB',
     'reserved_memory: 66560 MiB is more than the 65536 MiB'),
    ('cores: 8', 'cores: 8\n    switch_nodes: [2]',
     'cloud.yaml:4: hosts[0].switch_nodes[0]: there is no NUMA node 2'),
    ('cores: 8', 'cores: 8\n    physical_networks: {nfv_vswitch: [0]}',
     'physical_networks.nfv_vswitch: is the name of a label'),
    ('cores: 8', 'cores: 8\n    places: [osd]',
     'cloud.yaml:4: hosts[0].places: must be'),
    ('cores: 8', 'cores: 8\n    places: {a b: [0]}',
     "'a b' is not the name of a place"),
    ('cores: 8', 'cores: 8\n    places: {vswitch: [0]}',
     'hosts[0].places.vswitch: use switch_nodes'),
    ('cores: 8', 'cores: 8\n    places: {node7: [0]}',
     'hosts[0].places.node7: has a label that is of something else'),
    ('cores: 8', 'cores: 8\n    places: {osd: [0]}\n'
                 '    physical_networks: {nfv_osd: [0]}',
     'physical_networks.nfv_osd: is the name of a label'),
    ('cores: 8', 'cores: 8\n    dedicated_cpus: 1-16',
     'cloud.yaml:4: hosts[0].dedicated_cpus: CPU 16 is not on the host'),
    ('cores: 8', 'cores: 8\n    dedicated_cpus: 1-3\n    shared_cpus: 3-4',
     'cloud.yaml:5: hosts[0].shared_cpus: CPU 3 is dedicated as well'),
    ('cores: 8', 'cores: 8\n    dedicated_cpus: 3-1',
     "hosts[0].dedicated_cpus: '3-1' is not a range of CPUs"),
    ('cores: 8', 'cores: 8\n    dedicated_cpus: x',
     "hosts[0].dedicated_cpus: 'x' is not a CPU set"),
    ('cores: 8', 'cores: 8\n    dedicated_cpus: 1-3\n    vswitch_cores: 1',
     'cloud.yaml:5: hosts[0].vswitch_cores: cannot be combined'),
    ('flavors:', '  - {name: a, cores: 8, memory: 9000}\nflavors:',
     "cloud.yaml:5: hosts[1].name: the host 'a' is there already, from line "
     '2'),
    ('{tunneled: true}', '{tunneled: true, physical_network: p}',
     'cloud.yaml:12: networks.n: must have a physical_network or be'),
    # what is not there
    ('flavor: f', 'flavor: g', "cloud.yaml:15: steps[0].flavor: no flavor "
                               "named 'g'; known: f"),
    ('[n]', '[n]\n  - delete: t',
     "cloud.yaml:17: steps[1].delete: no server named 't'; known: s"),
    ('[n]', "[n]\n  - delete: 't*'", "no server named 't*'"),
    ('[n]', '[n]\n  - delete: s\n  - delete: s',
     "cloud.yaml:18: steps[2].delete: no server named 's'"),
    ('[n]', '[n]\n  - {boot: s, flavor: f}',
     "steps[1].boot: there is a server 's' already"),
    ('[n]', '[n]\n    expect: {placed: 2}',
     'steps[0].expect.placed: 2 is more than the 1 servers of the step'),
    ('[n]', '[n]\n    expect: {places: {osd: local}}',
     "steps[0].expect.places.osd: no place named 'osd'"),
    ('[n]', '[n]\n    expect: {servers: {t: {refused: true}}}',
     "steps[0].expect.servers.t: no server in this step named 't'"),
    # what the Nova API says
    ('dedicated', 'dedicate', 'cloud.yaml:10: flavors.f.extra_specs'),
    ('hw:cpu_policy: dedicated', 'nfv:vswitch_numa_affinity: strictly',
     "flavors.f.extra_specs['nfv:vswitch_numa_affinity']: the Nova API "
     'refuses this'),
    ('hw:cpu_policy: dedicated', '\n      '.join(
        f'x{number}: y' for number in range(257)),
     'flavors.f.extra_specs: 257 extra specs are more than 256'),
    ('hw:cpu_policy: dedicated', 'nfv:vswitch_affinity: strict',
     "flavors.f.extra_specs['nfv:vswitch_affinity']: the Nova API refuses "
     'this'),
]


class LoaderTestCase(base.SimulatorTestCase):

    def problems(self, text: str) -> str:
        error = self.assertRaises(
            problems.InputError, loader.loads, text, 'cloud.yaml')
        for problem in error.problems:
            self.assertNotIn('\n', problem)
        return str(error)

    def test_good(self):
        cloud = loader.loads('hosts: [{name: a, cores: 8, memory: 4 GiB}]')
        self.assertEqual(((), ()), (cloud.cloud.flavors, cloud.steps))
        cloud = loader.loads(GOOD)
        self.assertEqual([1], [len(cloud.cloud.hosts)])
        self.assertEqual('boot', cloud.steps[0].action)

    def test_bad(self):
        for old, new, message in BAD:
            with self.subTest(new=new):
                self.assertIn(old, GOOD)
                self.assertIn(message,
                              self.problems(GOOD.replace(old, new, 1)))

    def test_every_problem_is_reported(self):
        text = GOOD.replace('cores: 8', 'coers: 8\n    node: 2').replace(
            'vcpus: 2', 'vcpus: 0')
        self.assertEqual(3, len(self.problems(text).splitlines()))

    def test_many_problems(self):
        self.assertIn(' more', self.problems(GOOD.replace('flavors:', (
            'flavors:\n' + ''.join(
                f'  f{number}: {{vcpus: x, memory: 5}}\n'
                for number in range(1100))))))

    def test_too_much_in_all_groups(self):
        with files.limited(1):
            for key, number in (
                    ('cores: 2048', 3), ('other_ports: 8000', 2),
                    ('pci_devices: [{type: PF, node: 0, count: 16, vfs: 240}]',
                     3)):
                groups = ''.join(
                    f'- {{name: h{group}, memory: 8 GiB, '
                    f'{"" if "cores" in key else "cores: 8, "}{key}}}\n'
                    for group in range(number))
                problem, = self.problems(
                    f'hosts:\n{groups}flavors: {{f: {{vcpus: 1, memory: 1}}}}'
                    '\nsteps: []\n').splitlines()
                self.assertIn(
                    f'hosts[{number - 1}].{key.partition(":")[0]}: has more '
                    'than 8192 ', problem)

    def test_largest_host(self):
        cloud = loader.loads(GOOD.replace(
            'cores: 8', 'cores: 65535\n    numa_nodes: 1\n'
            '    platform_cores: 0\n    vswitch_cores: 0\n'
            '    dhcp_servers: 100000')).cloud
        validation.check(codec.decode(snapshot.Cloud, codec.encode(cloud)))

    def test_no_cloud(self):
        for text, message in (('', 'the file is empty'),
                              ('# nothing\n', 'the file is empty'),
                              ('just text', 'must be an object'),
                              ('- a\n- b\n', 'must be an object'),
                              ('[' * 5000, 'nested too deeply')):
            with self.subTest(text=text[:20]):
                self.assertIn(message, self.problems(text))

    def test_unreadable_files(self):
        with tempfile.TemporaryDirectory() as directory:
            binary = pathlib.Path(directory, 'binary')
            binary.write_bytes(b'\x7fELF\x00\xff\xfe')
            for path, message in (
                    (directory, 'is a directory'),
                    (os.path.join(directory, 'none'), 'No such file'),
                    (str(binary), ':1: not UTF-8 text'),
                    ('a\0b', 'null')):
                with self.subTest(path=path):
                    error = self.assertRaises(problems.InputError, loader.load,
                                              path)
                    self.assertIn(message, str(error))

    def test_unchecked_flavor(self):
        cloud = loader.loads(
            GOOD.replace('dedicated', 'nonsense').replace(
                'vcpus: 2', 'vcpus: 2\n    validate: false'))
        self.assertEqual('nonsense',
                         cloud.cloud.flavors[0].extra_specs['hw:cpu_policy'])

    def test_sizes(self):
        for value, kib in ((5, 5120), ('5', 5120), ('96 GiB', 96 << 20),
                           ('2M', 2048), ('1G', 1 << 20), ('0.5 GiB', 524288),
                           ('4KiB', 4)):
            self.assertEqual(kib, values.parse_size(value))
        for value in ('', 'GiB', '-1', '1 PiB', '96 GB', 'x',
                      f'1{" " * 200_000}x'):
            self.assertRaises(ValueError, values.parse_size, value)
