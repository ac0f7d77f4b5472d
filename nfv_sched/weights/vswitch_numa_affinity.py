#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""The weigher for guests that prefer the NUMA node of the virtual switch."""

from nova.scheduler import weights
from oslo_log import log as logging

from nfv_sched import conf
from nfv_sched import nova_compat
from nfv_sched import placement
from nfv_sched import policy as nfv_policy
from nfv_sched import request as nfv_request

LOG = logging.getLogger(__name__)

CONF = nova_compat.CONF
conf.register_opts(CONF)


class VSwitchNUMAAffinityWeigher(weights.BaseHostWeigher):
    """Prefer hosts with room on the NUMA nodes of their virtual switch.

    For guests with ``nfv:vswitch_numa_affinity=prefer`` a host weighs as much
    as the part of the guest's NUMA nodes that would be on nodes with the
    switch: 1 if all are, 0 if none is or the host does not say where its
    switch runs.  Other guests weigh the same everywhere.

    The servers of one request share the limits of a host.  Where a server
    without room at the switch would take the limits that hold another server
    of its request there, it weighs as much less, down to -1: such servers
    gather on few hosts.
    """

    # Hosts are not normalised against each other: one with room weighs 1 also
    # if all the others have room too.
    minval = 0.0
    maxval = 1.0

    def weight_multiplier(self, host_state):
        """The option, or the metadata of the host's aggregates."""
        return nova_compat.weight_multiplier(
            host_state, 'vswitch_numa_affinity_weight_multiplier',
            CONF.nfv_sched.vswitch_numa_affinity_weight_multiplier)

    def weigh_objects(self, weighed_obj_list, weight_properties):
        """The weights, -1 to 1; Nova's own method would cut off those < 0."""
        return [self._weigh_object(weighed.obj, weight_properties)
                for weighed in weighed_obj_list]

    def _weigh_object(self, host_state, request_spec):
        try:
            request_note = nfv_request.note_of(request_spec)
            request = request_note.read(request_spec)
            if request.policy.vswitch != nfv_policy.PREFER:
                return 0.0
            note = placement.note_of(host_state, request_note)
            decision = placement.decide(
                note, host_state, request, nfv_request.VSWITCH)
            return decision.local - decision.displaced
        except Exception:
            LOG.exception('Host %s cannot be weighed',
                          getattr(host_state, 'host', host_state))
            return 0.0
