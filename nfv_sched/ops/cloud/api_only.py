# SPDX-License-Identifier: Apache-2.0
"""Adapt a snapshot that was read by the API to Placement queries.

No API shows nova.conf, so Nova's options have their defaults.  Without the
option ``[pci] alias``, PCI devices have to be left out.
"""

import dataclasses

from nfv_sched.ops.cloud import snapshot

#: The extra spec that requests PCI devices.
ALIAS = 'pci_passthrough:alias'


def without_devices(flavor: snapshot.Flavor) -> snapshot.Flavor:
    """Return a flavor without its request for PCI devices."""
    return dataclasses.replace(flavor, extra_specs={
        key: value for key, value in flavor.extra_specs.items()
        if key != ALIAS})


def known(cloud: snapshot.Cloud) -> snapshot.Cloud:
    """Return a cloud without hosts for which Placement could not be read."""
    # Other hosts without resource providers have none in Placement: they stay.
    unread = cloud.unread(snapshot.MissingKind.PROVIDERS)
    return dataclasses.replace(cloud, hosts=tuple([
        host for host in cloud.hosts if host.uuid not in unread]))


def startable(cloud: snapshot.Cloud) -> snapshot.Cloud:
    """Return a cloud to simulate, whose servers request no PCI devices."""
    return dataclasses.replace(cloud, servers=tuple([
        dataclasses.replace(server, flavor=without_devices(server.flavor))
        for server in cloud.servers]))
