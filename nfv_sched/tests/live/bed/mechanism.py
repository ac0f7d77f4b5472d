# SPDX-License-Identifier: Apache-2.0
"""A mechanism driver for ML2 that binds every port, without agents."""

from neutron_lib.api.definitions import portbindings
from neutron_lib import constants
from neutron_lib.plugins.ml2 import api

_VIF_TYPES = {
    portbindings.VNIC_DIRECT: portbindings.VIF_TYPE_HW_VEB,
    portbindings.VNIC_MACVTAP: portbindings.VIF_TYPE_HW_VEB,
    portbindings.VNIC_DIRECT_PHYSICAL: portbindings.VIF_TYPE_HOSTDEV_PHY,
}


class BindAllMechanismDriver(api.MechanismDriver):
    """Binds ports to a switch, and those of SR-IOV to their device."""

    def initialize(self):
        """There is nothing to prepare."""

    @property
    def connectivity(self):
        return portbindings.CONNECTIVITY_L2

    def bind_port(self, context):
        vnic_type = context.current[portbindings.VNIC_TYPE]
        vif_type = _VIF_TYPES.get(vnic_type, portbindings.VIF_TYPE_OVS)
        for segment in context.segments_to_bind:
            details = {
                portbindings.CAP_PORT_FILTER:
                    vif_type == portbindings.VIF_TYPE_OVS}
            if vif_type != portbindings.VIF_TYPE_OVS:
                if not segment[api.PHYSICAL_NETWORK]:
                    continue
                details[portbindings.VIF_DETAILS_VLAN] = (
                    segment[api.SEGMENTATION_ID])
            context.set_binding(segment[api.ID], vif_type, details,
                                status=constants.PORT_STATUS_ACTIVE)
            return
