# SPDX-License-Identifier: Apache-2.0
"""Options of the ``[nfv_sched]`` section of nova.conf."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'nfv_sched',
    title='nfv-sched options',
    help="""
Options of the nfv-sched filters and weighers, read by ``nova-scheduler``, and
of ``nfv-sched-ledger``.
""")


def _without_effect(kind: type[cfg.Opt], name: str, **options) -> cfg.Opt:
    return kind(name, deprecated_for_removal=True, deprecated_reason="""
The scheduler reads neither Neutron nor the ledger in the background any more.
What it has to know comes with the allocation candidates of a request.
""", help='Without effect, for a nova.conf of before.', **options)


def _limit(name: str, default: float, text: str) -> cfg.FloatOpt:
    return cfg.FloatOpt(name, default=default, help=f"""{text}
0 or less: no limit.

Can be overridden per aggregate by metadata of the same name; of several
aggregates the lowest limit counts.
""")


def _multiplier(weigher: str, default: float, text: str,
                negative: str = 'reverses it') -> cfg.FloatOpt:
    name = f'{weigher.lower().replace(" ", "_")}_weight_multiplier'
    return cfg.FloatOpt(name, default=default, help=f"""
Multiplier of the {weigher} weigher. 0 turns the weigher off; a negative value
{negative}.
{text}
Can be overridden per aggregate by metadata of the same name.
""")


_OPTIONS = [
    cfg.StrOpt(
        'vswitch_label', default='nfv_vswitch', regex=r'^[^\s,]+$',
        help="""
Physical network name by which a compute node says where its virtual switch
runs.

A compute node lists this name in ``[neutron] physnets`` and gives the host
NUMA nodes of the switch in ``[neutron_physnet_<name>] numa_nodes``. No Neutron
network uses the name.
"""),
    cfg.StrOpt(
        'node_label_prefix', default='nfv_node', regex=r'^[^\s,]+$',
        help="""
Prefix of the physical network names that identify single host NUMA nodes.

With the default, a compute node with two NUMA nodes lists ``nfv_node0`` and
``nfv_node1`` in ``[neutron] physnets`` and declares each on the NUMA node of
that number. They let the scheduler name the exact NUMA nodes of a server.
"""),
    cfg.StrOpt(
        'strict_enforcement',
        default='claim',
        choices=[
            ('claim', 'A host is accepted only if the claim on the compute '
                      'node cannot end in a placement that breaks the '
                      'policy, whatever else arrives there first.'),
            ('predicted', 'A host is also accepted if the claim, made on '
                          'what the scheduler knows of the host now, ends '
                          'in a placement that keeps the policy. A server '
                          'that arrives in between can change that.'),
        ],
        help="""
What a host must offer to take a server with a strict policy or a node mapping.

The choice matters where labels cannot enforce the policy: for servers with
several NUMA nodes on hosts without node labels, and for mappings of several
guest NUMA nodes.
"""),
    cfg.StrOpt(
        'moves_without_limits',
        default='refuse',
        choices=[
            ('accept', 'A live migration is placed like any other move. It '
                       'may end against a strict policy.'),
            ('refuse', 'A host is accepted for a live migration only if every '
                       'placement that the claim could choose keeps the '
                       'policy, as where the switch runs on every NUMA node.'),
        ],
        help="""
What becomes of live migrations of servers with a strict policy or a node
mapping, on a Nova whose live migrations lose the limits of the scheduler.

Before 2026.2 the claim on the destination of a live migration is made without
the limits, and hence without the labels, that the scheduler chose (bug
2153425). The documentation has a patch for these releases: set ``accept``
where nova-conductor has it. Since 2026.2 the option has no effect.

Other moves keep the limits. To tell them apart, nova-scheduler reads the task
of the server; a move of which it cannot be read is taken for a live migration.
"""),
    _limit('shared_vcpus_per_core', 16.0, """
Shared vCPUs that a shared physical core takes, on the host NUMA node of a
server with ``nfv:shared_vcpu``.

All shared vCPUs of the NUMA node count, also those of servers without that
extra spec. The sibling threads of a core are one core. The limit comes on top
of Nova's own CPU allocation ratio.
"""),
    cfg.ListOpt('shadow', default=[], help="""
Filters and weighers of nfv-sched that are in shadow: they decide, and change
nothing, as if they were not enabled. What they would have done is counted,
logged and written to ``decision_journal``, from which ``nfv-sched server
explain --then --shadow`` makes a report.

Enable a filter or weigher in ``[filter_scheduler] enabled_filters`` or
``weight_classes`` and name its class here, such as
``VSwitchNUMAAffinityFilter,VSwitchNUMAAffinityWeigher``, before it counts. An
unknown name is logged as an error when nova-scheduler starts.
"""),
    _limit('vswitch_ports_per_node', 254, """
Ports that the virtual switch of a host may have: its physical ports, and all
that Neutron has bound to the host, but for ports beside the switch, such as
those of SR-IOV. Kept by ``VSwitchPortLimitFilter``.
"""),
    cfg.IntOpt('vswitch_physical_ports', default=4, min=0, help="""
Physical ports of the virtual switch of a host, counted against its limit of
vSwitch ports. Neutron does not know them.

Can be overridden per aggregate by metadata of the same name; of several
aggregates the highest counts.
"""),
    *(_limit(name, 8, f"""
{devices} that a server may have. Kept by ``VSwitchPortLimitFilter`` for new
servers.
""") for name, devices in (
        ('vnics_per_guest', 'Network interfaces on the virtual switch'),
        ('sriov_vfs_per_guest',
         'SR-IOV virtual functions, by ports and by aliases,'),
        ('pci_nics_per_guest',
         'Whole PCI NICs (physical functions), by ports and by aliases,'))),
    _limit('network_services_per_node', 250, """
DHCP servers and routers that may share a host. A host that carries more takes
no server that uses its virtual switch. Kept by ``VSwitchPortLimitFilter``.
"""),
    _limit('security_rules_per_node', 16384, """
Security-group rules, ingress and egress, that a host may carry: for each port
of its virtual switch the rules of the port's security groups. Kept by
``SecurityRuleLimitFilter``.
"""),
    _limit('security_rules_per_port', 128, """
Security-group rules, ingress and egress, that a port of a server may have.
Kept by ``SecurityRuleLimitFilter`` for new servers.
"""),
    _without_effect(cfg.StrOpt, 'ledger', default='none',
                    choices=['none', 'placement']),
    _without_effect(cfg.FloatOpt, 'ledger_refresh_interval', default=10.0,
                    min=0.1),
    cfg.FloatOpt('ledger_publish_interval', default=30.0, min=0.1, help="""
Seconds from the start of one round of ``nfv-sched-ledger`` to the start of the
next. A round writes to Placement what has changed: limits, new and removed
hosts, ports and rules that no server has allocated, such as those of DHCP
servers and routers or of interfaces attached after boot. A round that takes
longer than half the interval is followed by a pause as long as itself.
"""),
    cfg.IntOpt('ledger_threads', default=8, min=1, max=64, help="""
Hosts that ``nfv-sched-ledger`` looks after at a time, each with a connection
to Placement.
"""),
    cfg.StrOpt('ledger_metrics', help="""
File for the metrics of ``nfv-sched-ledger``, in the text format of Prometheus,
such as ``/var/lib/nova/nfv-sched-ledger.prom``. ``nfv-sched metrics`` and
``snapshot serve`` on the same host show them.
"""),
    _without_effect(cfg.FloatOpt, 'neutron_refresh_interval', default=60.0,
                    min=0.1),
    _without_effect(cfg.FloatOpt, 'neutron_first_fetch_timeout', default=5.0,
                    min=0.0),
    cfg.FloatOpt('neutron_lookup_timeout', default=10.0, min=0.0, help="""
Seconds that a request for a server waits for Neutron, which is asked for the
ports, networks and security groups of the request alone, a few requests at a
time. If there is no answer in time, a port is taken to have as many
security-group rules as ``security_rules_per_port`` allows, or 128 if that is
no limit, and later requests do not wait for a while. 0: never ask.
"""),
    cfg.FloatOpt('neutron_request_timeout', default=30.0, min=0.1, help="""
Seconds that one request to Neutron may take; a lower ``neutron_page_size``
makes requests quicker. A reading that meets a slower one is tried again later.
Requests to Keystone keep ``[neutron] timeout``, or this if that is not set.
"""),
    cfg.IntOpt('neutron_page_size', default=1000, min=1, max=10000, help="""
Ports or security-group rules asked for in one request. Neutron's own
``pagination_max_limit`` lowers it too.
"""),
    cfg.FloatOpt('max_snapshot_age', default=300.0, min=0.1, help="""
Seconds that ``nfv-sched-ledger`` and tools may take to read Neutron; a reading
that takes longer is given up. One that lacks most of what the one before it
had is believed only if Neutron still shows so little after half of this time.
"""),
    _without_effect(cfg.StrOpt, 'stale_snapshot_policy', default='allow',
                    choices=['allow', 'deny']),
    cfg.StrOpt(
        'expose_reasons',
        default='policy',
        choices=[
            ('none', "Nova's own message only. Not even what is wrong with "
                     'the flavor.'),
            ('policy', 'Which policies refused and what was needed, nothing '
                       'of what hosts have and how many there are. What is '
                       'wrong with the request itself is said in full.'),
            ('summary', 'What was needed, what the best host had, and how '
                        'many hosts refused; none is named. Discloses the '
                        'load of others, exactly with an affinity group.'),
            ('hosts', 'The same for each host, by name, those that lack '
                      'least first. For clouds whose tenants may know them.'),
        ],
        help="""
What a tenant reads in the fault of a server when a filter of nfv-sched
removed the last host.

All servers of a multi-create request get the reason of the one that found no
host. The scheduler's log has the reasons in every case.
"""),
    cfg.StrOpt('decision_journal', help="""
Directory for a journal of refusals: for each server for which Nova found no
host, the request, the flavor, and what left no host. Servers that were placed
are in it if a filter or weigher in shadow has examined them, or with
``decision_journal_placed``. Without a directory there is no journal.

Each worker of ``nova-scheduler`` writes it to files of its own, which only
their owner can read: they name hosts and what is free there. The directory is
made if it is missing; it has to belong to the user of ``nova-scheduler``, or
to root, and must not be open to all for writing. What cannot be written is
lost, and the log says so. ``nfv-sched server explain --then`` reads it.
"""),
    cfg.BoolOpt('decision_journal_placed', default=False, help="""
Write servers that were placed to ``decision_journal``, too: the host, and
how many hosts each filter of nfv-sched was given and left. Servers at which no
filter of nfv-sched has looked are not written. An entry takes some hundred
bytes.
"""),
    cfg.IntOpt(
        'decision_journal_size', default=100, min=1, max=1024 * 1024,
        help="""
Size of ``decision_journal``, in MiB: all its files together. The oldest are
removed; each worker beyond the first may add an eighth meanwhile. A refusal
takes some hundred bytes, and about 20 bytes for each host. Commands read the
newest 128 MiB, and more with ``--max-file-size``.
"""),
    _multiplier('vSwitch NUMA affinity', 1000.0, """
For a server that prefers the NUMA node of the virtual switch, a host with
capacity there weighs up to this much more than one without. The default
outweighs Nova's resource weighers, so that such a server leaves the switch's
NUMA node only if no host has capacity there. A host weighs less than nothing
where the server would cost another one of its multi-create request its place.
"""),
    _multiplier('PCI NUMA affinity', 1000.0, """
For a server that prefers PCI devices on its own NUMA nodes, a host that can
give such devices weighs up to this much more than one that cannot. The default
outweighs Nova's resource weighers, so that such a server gets remote devices
only if no host has local ones.
"""),
    _multiplier('place NUMA affinity', 1000.0, """
For a server that prefers the NUMA nodes of a place (``nfv:numa_affinity.*``),
or others (``nfv:numa_anti_affinity.*``), a host with capacity there weighs up
to this much more than one without. The default outweighs Nova's resource
weighers.
"""),
    _multiplier('shared vCPU', 1.0, """
For a server with ``nfv:shared_vcpu``, a host whose shared CPUs are idle weighs
up to this much more than one whose shared CPUs are full.
""", 'fills the shared CPUs of one host after the other'),
    _multiplier('NUMA fragmentation', 0.0, """
The host where a server takes least of the capacity for large servers weighs up
to this much more than the one where it takes most. That fills NUMA nodes up
one after the other, so that others stay whole. Something like 100.0 outweighs
Nova's resource weighers, which spread servers over all hosts, and leaves the
last word to the weighers of preferred NUMA nodes and devices.
""", 'spreads servers over NUMA nodes'),
    _multiplier('DHCP server', 1.0, """
Hosts that carry fewer DHCP servers weigh more. Nothing is preferred where
DHCP servers run on no host that Neutron names, as with ML2/OVN.
"""),
    _multiplier('router', 1.0, """
Hosts that carry fewer virtual routers weigh more.
"""),
    _multiplier('vSwitch port', 1.0, """
Hosts whose virtual switch has fewer ports, physical ones included, weigh more.
""", 'fills the switch of one host after the other'),
    cfg.StrOpt('cell_database_user', help="""
User name by which the databases of Nova's cells are read by the commands that
look at a cloud, such as ``nfv-sched snapshot save``, and by
``nfv-sched-ledger``.

By default that of the cell mappings, which may write. Set it to use an account
that may do no more than SELECT, together with one in ``[api_database]
connection``. It is the same for all cells, cell0 included.
"""),
    cfg.StrOpt('cell_database_password', secret=True, help="""
Password of ``cell_database_user``; not written to snapshots.
"""),
]

#: Names of the options that concern commands only, not where servers go.
OF_COMMANDS = frozenset([
    'cell_database_user', 'cell_database_password', 'ledger_metrics'])


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_group(GROUP)
    conf.register_opts(_OPTIONS, group=GROUP)


def list_opts():
    """Return (group, options) for oslo-config-generator and documentation."""
    return [(GROUP, _OPTIONS)]
