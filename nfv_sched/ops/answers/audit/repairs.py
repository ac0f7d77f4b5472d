# SPDX-License-Identifier: Apache-2.0
"""Write the commands that repair what the audit finds.

Those of ``nova-manage`` are tried on a real Nova by the functional tests.
"""

from collections.abc import Collection
from collections.abc import Mapping

import os_resource_classes as orc

Command = tuple[str, ...]

# "nova-manage placement audit" passes over consumers without any of these.
_AUDITED = frozenset({
    orc.VCPU, orc.MEMORY_MB, orc.DISK_GB, orc.VGPU,
    orc.NET_BW_EGR_KILOBIT_PER_SEC, orc.NET_BW_IGR_KILOBIT_PER_SEC, orc.PCPU,
    orc.MEM_ENCRYPTION_CONTEXT})
# With this version of Placement the consumer keeps its project and user.
_VERSION = '1.28'


def allocate(server: str, anew: bool) -> tuple[Command, ...]:
    force = ('--force',) if anew else ()
    return (('nova-manage', 'placement', 'heal_allocations', '--instance',
             server, *force),)


def remove(consumer: str,
           allocations: Mapping[str, Collection[str]]) -> tuple[Command, ...]:
    if all(_AUDITED.intersection(classes)
           for classes in allocations.values()):
        return tuple([
            ('nova-manage', 'placement', 'audit', '--resource_provider', uuid,
             '--delete') for uuid in allocations])
    return (('openstack', '--os-placement-api-version', _VERSION, 'resource',
             'provider', 'allocation', 'unset', *[
                 word for uuid in allocations
                 for word in ('--provider', uuid)], consumer),)


def move(host: str, server: str) -> tuple[Command, ...]:
    """Return the command that prints how to move a server."""
    return (('nfv-sched', 'host', 'drain', '--server', server, '-f',
             'commands', '--', host),)


def discover() -> tuple[Command, ...]:
    return (('nova-manage', 'cell_v2', 'discover_hosts'),)
