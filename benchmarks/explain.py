# SPDX-License-Identifier: Apache-2.0
"""Time of an explanation, by stage.

A cloud of hosts with two NUMA nodes, some of them in use, and a guest that no
host takes: every enabled filter is asked about every host, and changes of the
request are tried until the time for that is over.

Usage: python benchmarks/explain.py [--hosts 1000] [--try-seconds 0] [--quick]
"""

import argparse
import logging
import sys
import time
import warnings

warnings.simplefilter('ignore')

from nfv_sched.ops.answers.explain import explanation  # noqa: E402
from nfv_sched.ops.cloud.cloud_file import loader  # noqa: E402
from nfv_sched.ops.cloud import snapshot  # noqa: E402
from nfv_sched.ops.model.requests import subject  # noqa: E402
from nfv_sched.ops.simulator import configuration  # noqa: E402
from nfv_sched.ops.simulator import engine  # noqa: E402
from nfv_sched.ops.simulator import request  # noqa: E402
from nfv_sched.ops.simulator import state as states  # noqa: E402

CLOUD = """\
hosts:
  - name: single-{{n:04}}
    count: {half}
    cores: 14
    threads: 2
    memory: 128 GiB
    pages: {{1G: 96}}
    shared_cores_per_node: 1
  - name: split-{{n:04}}
    count: {half}
    cores: 14
    threads: 2
    memory: 128 GiB
    pages: {{1G: 96}}
    switch_nodes: [0, 1]
    vswitch_cores: 1
    shared_cores_per_node: 1
    pci_devices: [{{type: VF, node: 0, count: 8, physical_network: physnet1}}]
networks:
  vf: {{physical_network: physnet1, vnic_type: direct}}
flavors:
  small:
    vcpus: 8
    memory: 8 GiB
    extra_specs: {{hw:cpu_policy: dedicated, hw:mem_page_size: 1GB}}
steps:
  - {{boot: s, flavor: small, count: {boots}}}
"""

FLAVOR = snapshot.Flavor(name='large', vcpus=26, memory=65536, extra_specs={
    'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '1GB',
    'nfv:vswitch_numa_affinity': 'strict',
    'nfv:pci_numa_affinity': 'strict'})


def main() -> int:
    """Print seconds by stage."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition('\n')[0])
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--boots', type=int, default=20)
    parser.add_argument('--try-seconds', type=float, default=0)
    parser.add_argument('--quick', action='store_true',
                        help='20 hosts, and changes for a second')
    args = parser.parse_args()
    if args.quick:
        args.hosts, args.try_seconds = 20, 1
    logging.disable(logging.CRITICAL)
    text = CLOUD.format(half=args.hosts // 2, boots=args.boots)
    with configuration.defaults() as defaults:
        scenario = loader.loads(text, 'cloud', defaults)
        with configuration.overrides(scenario):
            simulation = engine.Simulation(states.State(scenario))
            simulation.run()
            began = time.monotonic()
            found = explanation.explain(
                simulation.state, subject.ExplainSubject(
                    text='large', requested=request.BootRequest(
                        flavor=FLAVOR,
                        ports=((scenario.networks['vf'], ()),))),
                relax_seconds=args.try_seconds)
            took = time.monotonic() - began
    passed = sum(host.passes for host in found.hosts)
    print(f'{len(found.hosts)} hosts, {len(found.filters)} filters, '
          f'{passed} hosts pass, {found.changes_tried} changes tried')
    for stage, seconds in found.seconds.items():
        print(f'{stage:12} {seconds:8.2f} s')
    print(f'{"all":12} {took:8.2f} s')
    return 0


if __name__ == '__main__':
    sys.exit(main())
