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


def _without_effect(kind: type[cfg.Opt], name: str, text: str,
                    **options) -> cfg.Opt:
    return kind(name, deprecated_for_removal=True, deprecated_reason="""
The scheduler reads neither Neutron nor the ledger in the background any more.
What it has to know comes with the allocation candidates of a request.
""", help=f"""
Without effect. It was {text.lstrip()}""", **options)


def _limit(name: str, default: float, text: str) -> cfg.FloatOpt:
    return cfg.FloatOpt(name, default=default, help=f"""{text}
0 or less: no limit.

Can be overridden per aggregate by metadata of the same name; of several
aggregates the lowest limit counts.
""")


def _multiplier(weigher: str, default: float, text: str) -> cfg.FloatOpt:
    name = f'{weigher.lower().replace(" ", "_")}_weight_multiplier'
    return cfg.FloatOpt(name, default=default, help=f"""
Multiplier of the {weigher} weigher.
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
NUMA nodes of the switch in
``[neutron_physnet_<name>] numa_nodes``. No Neutron network uses the name; it
is a label for placement only.
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

A server with one NUMA node is enforced by the labels (``vswitch_label``,
``node_label_prefix``). The choice matters for servers with several NUMA nodes
on hosts without node labels, and for mappings of several guest NUMA nodes,
which labels cannot tell apart.
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
where nova-conductor has it. On 2026.2 and later the option has no effect.

Cold migrations, resizes, evacuations and unshelves keep the limits on all
releases, and are not concerned. To tell them apart, nova-scheduler reads the
task of the server from the database of its cell; if that cannot be read, the
move is taken for a live migration.
"""),
    cfg.FloatOpt('shared_vcpus_per_core', default=16.0, help="""
Shared vCPUs that a shared physical core takes, on the host NUMA node of a
server with ``nfv:shared_vcpu``.

All shared vCPUs of the NUMA node count, also those of servers without that
extra spec. The sibling threads of a core are one core. The limit comes on top
of Nova's own CPU allocation ratio. 0 or less: no limit but Nova's.

Can be overridden per aggregate by metadata of the same name; of several
aggregates the lowest counts.
"""),
    cfg.ListOpt('shadow', default=[], help="""
Filters and weighers of nfv-sched that are in shadow: they decide, and change
nothing. A filter in shadow passes all hosts, and neither labels nor
reservations nor claims in the ledger come of it; a weigher in shadow weighs
nothing. Otherwise it is as if they were not enabled. What they would have done
is counted, logged and written to ``decision_journal``, from which ``nfv-sched
server explain --then --shadow`` makes a report.

Enable a filter or weigher in ``[filter_scheduler] enabled_filters`` or
``weight_classes`` and name its class here, such as
``VSwitchNUMAAffinityFilter,VSwitchNUMAAffinityWeigher``, before it counts. A
name that nfv-sched does not have is logged as an error when nova-scheduler
starts, and has no effect.

It is for the whole cloud.
"""),
    _limit('vswitch_ports_per_node', 254, """
Ports that the virtual switch of a host may have: its physical ports, the vNICs
of servers, the ports of DHCP servers and routers, and any other port that
Neutron has bound to the host. Ports beside the switch, such as those of
SR-IOV, do not count. Kept by ``VSwitchPortLimitFilter``.
"""),
    cfg.IntOpt('vswitch_physical_ports', default=4, min=0, help="""
Physical ports of the virtual switch of a host, counted against its limit of
vSwitch ports. Neutron does not know them.

Can be overridden per aggregate by metadata of the same name; of several
aggregates the highest counts.
"""),
    _limit('vnics_per_guest', 8, """
Network interfaces that a server may have on the virtual switch. Kept by
``VSwitchPortLimitFilter`` for new servers.
"""),
    _limit('sriov_vfs_per_guest', 8, """
SR-IOV virtual functions that a server may have, by ports and by aliases. Kept
by ``VSwitchPortLimitFilter`` for new servers.
"""),
    _limit('pci_nics_per_guest', 8, """
Whole PCI NICs, that is physical functions, that a server may have, by ports
and by aliases. Kept by ``VSwitchPortLimitFilter`` for new servers.
"""),
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
    cfg.StrOpt(
        'ledger',
        default='none',
        choices=['none', 'placement'],
        deprecated_for_removal=True,
        deprecated_reason="""
Ports and security-group rules are always accounted for in Placement.
""",
        help="""
Without effect on the scheduler, which claims ports and security-group rules in
Placement. It was where they were accounted for.
"""),
    _without_effect(cfg.FloatOpt, 'ledger_refresh_interval', """
the time between two readings of the ledger in
Placement by a worker of ``nova-scheduler``, in seconds.
""", default=10.0, min=0.1),
    cfg.FloatOpt('ledger_publish_interval', default=30.0, min=0.1, help="""
Seconds from the start of one round of ``nfv-sched-ledger`` to the start of the
next. A round reads the compute nodes, Neutron and the ledger, and writes to
Placement what has changed: limits, new and removed hosts, ports and rules that
no server has allocated, such as those of DHCP servers and routers or of
interfaces attached after boot. Until then Placement does not know of them.

A round that takes longer than half the interval is followed by a pause as long
as itself.
"""),
    cfg.IntOpt('ledger_threads', default=8, min=1, max=64, help="""
Hosts that ``nfv-sched-ledger`` looks after at a time, each with a connection
to Placement.
"""),
    _without_effect(cfg.FloatOpt, 'neutron_refresh_interval', """
the time between two readings of Neutron by a worker of
``nova-scheduler``, in seconds.
""", default=60.0, min=0.1),
    _without_effect(cfg.FloatOpt, 'neutron_first_fetch_timeout', """
the time that the first request in a worker waited for
the first reading of Neutron, in seconds.
""", default=5.0, min=0.0),
    cfg.FloatOpt('neutron_lookup_timeout', default=10.0, min=0.0, help="""
Seconds that a request for a server waits for Neutron, which is asked for the
ports, networks and security groups of the request alone, a few requests at a
time. If there is no answer in time, a port is taken to have as many
security-group rules as ``security_rules_per_port`` allows, or 128 if that is
no limit, and later requests do not wait for a while. 0: never ask.
"""),
    cfg.FloatOpt('neutron_request_timeout', default=30.0, min=0.1, help="""
Seconds that one request to Neutron may take, from its first byte to the last
one of the answer. A reading that meets a slower one is given up and tried
again later; a lower ``neutron_page_size`` makes them quicker. Requests to
Keystone keep ``[neutron] timeout``, or this if that is not set.
"""),
    cfg.IntOpt('neutron_page_size', default=1000, min=1, max=10000, help="""
Ports or security-group rules asked for in one request. Lower it if Neutron
needs longer than ``neutron_request_timeout`` for a page. Neutron's own
``pagination_max_limit`` lowers it too.
"""),
    cfg.FloatOpt('max_snapshot_age', default=300.0, min=0.1, help="""
Seconds that ``nfv-sched-ledger`` and tools may take to read Neutron; a reading
that takes longer is given up. One that lacks most of what the one before it
had is believed only if Neutron still shows so little after half of this time.
"""),
    _without_effect(cfg.StrOpt, 'stale_snapshot_policy', """
what became of the limits on ports and rules while a
worker of ``nova-scheduler`` had no figures from Neutron.
""", default='allow', choices=['allow', 'deny']),
    cfg.StrOpt(
        'expose_reasons',
        default='policy',
        choices=[
            ('none', "Nova's own message only. Not even what is wrong with "
                     'the flavor.'),
            ('policy', 'Which policies refused and what was needed. Discloses '
                       'nothing of what hosts have, of how many there are, or '
                       'of the age of the figures. What is wrong with the '
                       'request itself is said in full.'),
            ('summary', 'What was needed, what the best host had, and how '
                        'many hosts refused. Discloses the load of others: '
                        "an affinity group names a host of one's own servers, "
                        'and what is free there then is exact. No host is '
                        'named.'),
            ('hosts', 'The same for each host, by name, those that lack '
                      'least first. For clouds whose tenants may know the '
                      'hosts and what runs on them.'),
        ],
        help="""
What a tenant reads in the fault of a server when a filter of nfv-sched
removed the last host.

With every value but ``none`` tenants learn which policies refused. That a
host is full for a certain request can be learnt by trying in any cloud; with
``policy`` the reason adds no figure to it.

All servers of a multi-create request get the reason of the one that found no
host. The scheduler's log has the reasons in every case.
"""),
    cfg.StrOpt('decision_journal', help="""
Directory for a journal of refusals: for each server for which Nova found no
host, the request, the flavor, and what left no host. That is a filter of
nfv-sched, with the reason of every host that it refused; another filter, with
the number of hosts that each filter left; or Placement, with what it was asked
for. Servers that were placed are in it if a filter or weigher in shadow has
examined them, or with ``decision_journal_placed``. Without a directory there
is no journal.

Each worker of ``nova-scheduler`` writes it to files of its own, which only
their owner can read: they name hosts and what is free there. The directory is
made if it is missing; it has to belong to the user of ``nova-scheduler``, or
to root, and must not be open to all for writing. It should be on a local disk,
as the log. What cannot be written is lost, and the log says so; no request
fails for it. ``nfv-sched server explain --then`` reads it.
"""),
    cfg.BoolOpt('decision_journal_placed', default=False, help="""
Write servers that were placed to ``decision_journal``, too: the host, and
how many hosts each filter of nfv-sched was given and left. Servers at which no
filter of nfv-sched has looked are not written.

An entry takes some hundred bytes. Without the option only those are written
that a filter or weigher in shadow has examined.
"""),
    cfg.IntOpt(
        'decision_journal_size', default=100, min=1, max=1024 * 1024,
        help="""
Size of ``decision_journal``, in MiB: all its files together, those of
processes that have ended included. A file has an eighth of the size at most. A
worker that begins one removes the oldest before; each further worker may add
an eighth meanwhile. A refusal takes some hundred bytes, and about 20 bytes for
each host; beyond 256 KiB hosts are left out. Commands read the newest 128 MiB,
and more with ``--max-file-size``.
"""),
    _multiplier('vSwitch NUMA affinity', 1000.0, """
For a server that prefers the NUMA node of the virtual switch, a host with
capacity there weighs up to this much more than one without. The default
outweighs Nova's resource weighers, so that such a server leaves the switch's
NUMA node only if no host has capacity there. 0 turns the weigher off; a
negative value reverses it.

A host weighs less than nothing where the server, for lack of capacity at the
switch, would cost another server of its multi-create request its place there.
"""),
    _multiplier('PCI NUMA affinity', 1000.0, """
For a server that prefers PCI devices on its own NUMA nodes, a host that can
give such devices weighs up to this much more than one that cannot. The default
outweighs Nova's resource weighers, so that such a server gets remote devices
only if no host has local ones. 0 turns the weigher off; a negative value
reverses it.
"""),
    _multiplier('place NUMA affinity', 1000.0, """
For a server that prefers the NUMA nodes of a place (``nfv:numa_affinity.*``),
or others (``nfv:numa_anti_affinity.*``), a host with capacity there weighs up
to this much more than one without. The default outweighs Nova's resource
weighers. 0 turns the weigher off; a negative value reverses it.
"""),
    _multiplier('shared vCPU', 1.0, """
For a server with ``nfv:shared_vcpu``, a host whose shared CPUs are idle weighs
up to this much more than one whose shared CPUs are full. 0 turns the weigher
off; a negative value fills the shared CPUs of one host after the other.
"""),
    _multiplier('NUMA fragmentation', 0.0, """
The host where a server takes least of the capacity for large servers weighs up
to this much more than the one where it takes most. That fills NUMA nodes up
one after the other, so that others stay whole. By default the weigher is off,
and Nova's own weighers spread servers over all hosts.

Something like 100.0 outweighs Nova's resource weighers, and leaves the last
word to the weighers of preferred NUMA nodes and devices. A negative value
spreads servers over NUMA nodes.
"""),
    _multiplier('DHCP server', 1.0, """
Hosts that carry fewer DHCP servers weigh more. Nothing is preferred where
DHCP servers run on no host that Neutron names, as with ML2/OVN. 0 turns the
weigher off; a negative value reverses it.
"""),
    _multiplier('router', 1.0, """
Hosts that carry fewer virtual routers weigh more. 0 turns the weigher off; a
negative value reverses it.
"""),
    _multiplier('vSwitch port', 1.0, """
Hosts whose virtual switch has fewer ports, physical ones included, weigh more.
0 turns the weigher off; a negative value fills the switch of one host after
the other.
"""),
    cfg.StrOpt('cell_database_user', help="""
User name by which the databases of Nova's cells are read by the commands that
look at a cloud, such as ``nfv-sched snapshot save``, and by
``nfv-sched-ledger``.

By default that of the cell mappings, which may write. Set it to use an account
that may do no more than SELECT, together with one in ``[api_database]
connection`` of the same configuration. It is the same for all cells, cell0
included. ``nova-scheduler`` does not use it.
"""),
    cfg.StrOpt('cell_database_password', secret=True, help="""
Password of ``cell_database_user``.

It is not written to snapshots.
"""),
]

#: Names of the options that concern commands only, not where servers go.
OF_COMMANDS = frozenset(['cell_database_user', 'cell_database_password'])


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_group(GROUP)
    conf.register_opts(_OPTIONS, group=GROUP)


def list_opts():
    """Return (group, options) for oslo-config-generator and documentation."""
    return [(GROUP, _OPTIONS)]
