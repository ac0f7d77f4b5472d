# SPDX-License-Identifier: Apache-2.0
"""Filter hosts by the number of ports of their virtual switch."""

from nfv_sched.filters import network
from nfv_sched.limits import decide


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

    counted = decide.PORTS

    def concerns(self, request):
        return bool(request.nics or request.demands or request.is_move)
