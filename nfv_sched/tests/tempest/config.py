# SPDX-License-Identifier: Apache-2.0
"""What the tests have to know about the cloud: group nfv_sched.

The defaults are those of one compute node with one NUMA node.  A test for
which the cloud lacks something is skipped and says what.
"""

from importlib import metadata

from oslo_config import cfg

SERVICE_OPTION = cfg.BoolOpt(
    'nfv_sched',
    default=True,
    help='Whether the schedulers and APIs of Nova run with nfv-sched.')

GROUP = cfg.OptGroup(name='nfv_sched', title='nfv-sched')

OPTIONS = [
    cfg.ListOpt(
        'enabled_filters',
        default=sorted(metadata.entry_points(group='nfv_sched.filters').names),
        help='The filters of nfv-sched that the schedulers have enabled.'),
    cfg.DictOpt(
        'numa_nodes',
        default={'*': '1'},
        help="""
How many NUMA nodes each compute host has: ``host:number``, separated by
commas. ``*`` stands for all hosts that are not named.
"""),
    cfg.DictOpt(
        'vswitch_nodes',
        default={'*': '0'},
        help="""
The host NUMA nodes on which the virtual switch runs, as the label nfv_vswitch
declares them: ``host:nodes``, separated by commas; several nodes of a host are
joined by ``+``. ``*`` stands for all hosts that are not named. Example:
``compute1:0,compute2:1,*:0+1``.
"""),
    cfg.BoolOpt(
        'node_labels',
        default=True,
        help='Whether all compute hosts declare the labels nfv_nodeN.'),
    cfg.BoolOpt(
        'dedicated_cpus',
        default=True,
        help="""
Whether all compute hosts have dedicated CPUs (``[compute]
cpu_dedicated_set``), on each NUMA node at least two.
"""),
    cfg.BoolOpt(
        'shared_cpus',
        default=False,
        help="""
Whether compute hosts have, beside the dedicated CPUs, shared ones
(``[compute] cpu_shared_set``) on a NUMA node with dedicated ones.
"""),
    cfg.StrOpt(
        'pci_alias',
        default='',
        help="""
Alias of PCI devices for the tests of PCI NUMA affinity, with the NUMA policy
``required`` or ``legacy``. Empty if there are none.
"""),
    cfg.DictOpt(
        'pci_nodes',
        default={},
        help="""
The host NUMA nodes with devices of ``pci_alias``, in the form of
``vswitch_nodes``.
"""),
    cfg.IntOpt(
        'vnics_per_guest',
        default=8,
        min=0,
        help="""
The limit of the same name in nova.conf: ports of the virtual switch that a
server may have. 0 if there is no limit.
"""),
    cfg.BoolOpt(
        'ledger',
        default=False,
        help="""
Whether the schedulers have ``[nfv_sched] ledger = placement`` and
nfv-sched-ledger has published all compute hosts.
"""),
    cfg.IntOpt(
        'guest_ram',
        default=256,
        min=1,
        help="""
Memory of the flavors of the tests in MiB, a multiple of the host's page size;
not less than ``min_ram`` of the image.
"""),
    cfg.IntOpt(
        'guest_disk',
        default=1,
        min=0,
        help="""
Disk of the flavors of the tests in GiB, not less than ``min_disk`` of the
image.
"""),
    cfg.StrOpt(
        'expose_reasons',
        default='policy',
        choices=['none', 'policy', 'summary', 'hosts'],
        help='The option of the same name in nova.conf.'),
]
