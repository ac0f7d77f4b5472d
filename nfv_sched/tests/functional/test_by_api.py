# SPDX-License-Identifier: Apache-2.0
"""What commands tell of a running Nova by its APIs alone."""

from nfv_sched.ops.answers.capacity import upper_bound
from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.cloud import api
from nfv_sched.ops.cloud import api_only
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.simulator import start
from nfv_sched.tests.functional import test_api
from nfv_sched.tests.functional import test_snapshot


class ByAPITest(test_snapshot.SnapshotTestCase):
    """As by Nova's databases, as far as Placement goes."""

    def setUp(self):
        super().setUp()
        self.pinned, self.shared, self.refused, _group = self.boot_all()
        self.whole = self.read()
        self.shown = api.read(
            test_api.connect(
                self.admin_api,
                placement_endpoint_override=self.placement_api.url),
            ('hosts', 'flavors', 'servers'))

    def test_capacity(self):
        wanted = capacity.capacities(self.whole, [
            api_only.without_devices(each) for each in self.whole.flavors])
        found = upper_bound.bounds(self.shown, self.shown.flavors)
        self.assertEqual(
            [(each.flavor.name, {name: host.placement for name, host
                                 in each.hosts.items()}) for each in wanted],
            [(each.flavor.name, dict(each.hosts)) for each in found])
        self.assertEqual({True, False}, {each.most > 0 for each in found})

    def placement_of(self, cloud, server):
        """Placement's part of the explanation of a server."""
        with start.started(api_only.startable(cloud)) as state:
            found = explanation.explain_placement(state, subject.server(
                cloud, state, server['id']))
        return found, (found.reason, found.placement, [
            (host.name, host.present, host.found, host.misses)
            for host in found.hosts])

    def test_explain(self):
        for server, fits in ((self.pinned, None), (self.shared, None),
                             (self.refused, False)):
            _wanted, parts = self.placement_of(self.whole, server)
            found, shown = self.placement_of(self.shown, server)
            self.assertEqual(parts, shown)
            self.assertIs(fits, found.fits)
