# SPDX-License-Identifier: Apache-2.0
"""Filter hosts by the number of ports of their virtual switch."""

import math

from nfv_sched.base import reasons
from nfv_sched.filters import network
from nfv_sched.limits import allowance


class VSwitchPortLimitFilter(network.NetworkLimitFilter):
    """Keep the ports of a host's virtual switch below its limit.

    A host passes if its physical ports, the ports that Neutron has bound to
    it and those of the guest are at most ``vswitch_ports_per_node``, and if it
    carries no more DHCP servers and routers than
    ``network_services_per_node``.  Ports beside the switch, such as those of
    SR-IOV, take none.  A new guest with more interfaces or devices than
    ``vnics_per_guest``, ``sriov_vfs_per_guest`` or ``pci_nics_per_guest`` is
    refused.
    """

    counted = allowance.PORTS

    def concerns(self, request):
        """Return whether the guest has network interfaces or devices."""
        return bool(request.nics or request.demands or request.is_move)

    def room(self, limits):
        """Return the limit, and the limit less the physical ports."""
        limit = limits.vswitch_ports_per_node
        return limit, limit - limits.vswitch_physical_ports

    def guest_refusal(self, demand, limits):
        """Return the reason for more interfaces or devices than allowed."""
        for what, need, most in (
            ('vNICs of a server', demand.vswitch_ports,
             limits.vnics_per_guest),
            ('VFs of a server', demand.vfs, limits.sriov_vfs_per_guest),
            ('PFs of a server', demand.pci_nics, limits.pci_nics_per_guest),
        ):
            if need > most:
                return self._allowed(what, need, most)
        return None

    def is_picky(self, limits):
        """Return whether DHCP servers and routers are limited."""
        return limits.network_services_per_node < math.inf

    def host_refusal(self, limits, host_usage):
        """Return the reason for too many DHCP servers and routers."""
        services = host_usage.dhcp_servers + host_usage.routers
        if services <= limits.network_services_per_node:
            return None
        return reasons.Reason(
            self.counted.order, 'DHCP servers and routers',
            'capacity beside them needed',
            f'{services} on the host, at most '
            f'{limits.network_services_per_node:.0f} allowed', -services)
