# SPDX-License-Identifier: Apache-2.0
"""What strict and prefer come to, for each policy of which it is a table."""

import itertools

from nfv_sched.filters import place_numa_affinity
from nfv_sched.tests import outcomes
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base

OSD = f'{outcomes.AT}osd'
NOT_OSD = f'{outcomes.AWAY_FROM}osd'


class OutcomesTest(base.FilterTestCase):

    def ends(self, row, declares, enabled):
        """The ends that describe where the claim puts the guest."""
        wanted = set(range(2 - row.wanted_nodes, 2))
        marked = None
        if declares is not outcomes.Declares.NOTHING:
            marked = {0, 1} - wanted if row.key == NOT_OSD else wanted
        topology = {
            'node_labels': declares is outcomes.Declares.ALL,
            # A mapped guest does not go to node 0 by itself.
            'free': {1: 1} if row.full else (
                {0: 2} if row.mapped_away else {}),
            'switch': None}
        if row.key == outcomes.KEY:
            topology['switch'] = marked
        elif marked is not None:
            topology['physnets'] = {'nfv_osd': marked}
        host, guest = clouds.host(**topology), clouds.guest(row.guest_nodes)
        if not self.passing([host], clouds.spec(
                cells=row.guest_nodes,
                extra_specs=row.extra_specs(node=0)), enabled):
            return [outcomes.Ends.REFUSED]
        nodes, found = self.node_of(host, guest), []
        if set(nodes) <= wanted and len(set(nodes)) == row.guest_nodes:
            found.append(outcomes.Ends.WITH)
        if not wanted.intersection(nodes):
            found.append(outcomes.Ends.AWAY)
        # The host has no limits: this is what Nova does by itself.
        if nodes == self.node_of(clouds.host(**topology), guest):
            found.append(outcomes.Ends.ANYWHERE)
        return found

    def test_outcomes(self):
        """Whichever of the filters is first, or alone."""
        self.flags(expose_reasons='none')
        place = place_numa_affinity.PlaceNUMAAffinityFilter()
        for key, own in ((outcomes.KEY, self.vswitch), (OSD, place),
                         (NOT_OSD, place)):
            for row, declares, enabled in itertools.product(
                    outcomes.rows(key), outcomes.Declares,
                    ([self.topology, own], [own, self.topology], [own])):
                self.assertIn(
                    row.ends[declares], self.ends(row, declares, enabled),
                    f'{row.title}; hosts declare {declares.value}')
