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
"""Weighers of network load, on hosts that carry something."""

from nova.scheduler import weights as nova_weights

from nfv_sched.tests.unit.filters import network


class NetworkWeigherTestCase(network.NetworkTestCase):
    """Hosts that carry less weigh more."""

    def order(self, weigher, *hosts):
        """Names of the hosts, best first, with their weights."""
        weighed = nova_weights.HostWeightHandler().get_weighed_objects(
            [weigher], list(hosts), self.spec())
        return [(host.obj.host, host.weight) for host in weighed]

    def hosts(self):
        return [self.host('host%d' % number) for number in (1, 2, 3)]
