# SPDX-License-Identifier: Apache-2.0
"""Find servers whose vCPUs or memory are not confined as they should be."""

from nfv_sched.ops.answers.audit import hosts
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.answers.hosts import memory
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.cloud import occupied

_PAGE_SIZE = 'hw:mem_page_size'


def floating(site: hosts.Site) -> hosts.Findings:
    """Find servers whose vCPUs float over CPUs that others are pinned to.

    With ``cpu_shared_set`` floating vCPUs have CPUs of their own and do no
    harm.  They do where shared and pinned servers use the same CPUs
    (``vcpu_pin_set``), and on a host without shared CPUs.
    """
    nodes = site.host.nodes or ()
    pinned: dict[int, set[str]] = {}
    for server, part in site.certain:
        if occupied.exclusive_cpus(part):
            pinned.setdefault(part.host_node, set()).add(server.uuid)
    if not pinned:
        return
    apart = any(node.shared for node in nodes)
    hurt = {node.number for node in nodes if node.number in pinned and (
        not apart or node.shared & node.dedicated)}
    for server in site.steady:
        where = hurt
        if server.nodes is not None:
            where = hurt & {part.host_node for part in server.nodes
                            if part.shared}
        shown = sorted(number for number in where
                       if pinned[number] != {server.uuid})
        if shown:
            yield site.finding(
                values.FLOATING, 'floats over the CPUs that servers are '
                f'pinned to, on node {", ".join(map(str, shown))}', server)


def reserve(site: hosts.Site) -> hosts.Findings:
    """Yield a finding if floating servers use memory of the platform.

    Placement counts huge pages as memory for them, too.  With an allocation
    ratio above 1 they may use that many times the small pages.
    """
    small = memory.small_pages(
        site.host, site.servers, view.ratio(site.cloud, site.host, 'ram'))
    if small is None or not site.host.providers:
        return  # the reserved memory is not known
    overuse = memory.overuse(small)
    if overuse:
        yield site.finding(values.RESERVE, overuse)


def pages(site: hosts.Site) -> hosts.Findings:
    """Find servers with ``hw:mem_page_size`` but no memory in pages."""
    for server in site.steady:
        page_size = server.flavor.extra_specs.get(_PAGE_SIZE)
        if page_size is not None and (server.nodes is None or not all(
                part.page_size for part in server.nodes)):
            yield site.finding(
                values.PAGES, f'{_PAGE_SIZE}={page_size}, but its '
                f'{server.flavor.memory} MiB are claimed in no page size',
                server)
