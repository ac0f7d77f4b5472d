# SPDX-License-Identifier: Apache-2.0
"""Weighers of network load, on hosts that carry something."""

from nova.scheduler import weights as nova_weights

from nfv_sched.tests.unit.filters import network


class NetworkWeigherTestCase(network.NetworkTestCase):
    """Hosts that carry less weigh more."""

    def order(self, weigher, *hosts, published=None):
        spec = self.spec()
        self.answered(
            hosts if published is None else published, spec)
        weighed = nova_weights.HostWeightHandler().get_weighed_objects(
            [weigher], list(hosts), spec)
        return [(host.obj.host, host.weight) for host in weighed]

    def hosts(self):
        return [self.host('host%d' % number) for number in (1, 2, 3)]
