# SPDX-License-Identifier: Apache-2.0
"""A cloud of which only the API is known, so that Placement can be asked.

Nova's options are in nova.conf, which no API shows: its defaults are taken.
Aliases of PCI devices are among these options, so that devices are left out.
"""

import dataclasses

from nfv_sched.ops.snapshot import snapshot

#: The extra spec that asks for PCI devices.
ALIAS = 'pci_passthrough:alias'


def without_devices(flavor: snapshot.Flavor) -> snapshot.Flavor:
    """Return a flavor that asks for no PCI devices."""
    return dataclasses.replace(flavor, extra_specs={
        key: value for key, value in flavor.extra_specs.items()
        if key != ALIAS})


def known(cloud: snapshot.Cloud) -> snapshot.Cloud:
    """Return a cloud without hosts for which Placement could not be read.

    Nothing else is known of them; ``missing`` names what was not read.
    """
    # Others without resource providers are such that Placement does not have.
    unread = cloud.unread(snapshot.MissingKind.PROVIDERS)
    return dataclasses.replace(cloud, hosts=tuple([
        host for host in cloud.hosts if host.uuid not in unread]))


def startable(cloud: snapshot.Cloud) -> snapshot.Cloud:
    """Return a cloud whose servers have no devices, to be simulated."""
    return dataclasses.replace(cloud, servers=tuple([
        dataclasses.replace(server, flavor=without_devices(server.flavor))
        for server in cloud.servers]))
