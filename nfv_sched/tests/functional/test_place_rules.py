# SPDX-License-Identifier: Apache-2.0

"""The rules of places, on the NUMA nodes of real claims.

The rows of virtual switch affinity, for the affinity to a place that is on
node 1, and for the anti-affinity to one that is on node 0.
"""

from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import test_vswitch_rules
from nfv_sched.tests import outcomes

#: What operators have, of whatever kind.
PLACE = 'osd'


class PlaceTestCase(base.NFVCloudTestCase):
    """A cloud whose hosts have places, and no virtual switch."""

    extra_filters = ['NFVTopologyFilter', 'PlaceNUMAAffinityFilter']


class At(test_vswitch_rules.Rules):
    key = outcomes.AT + PLACE

    def declaring(self, wanted):
        return {'switch': (), 'places': {PLACE: wanted}}


class Away(test_vswitch_rules.Rules):
    key = outcomes.AWAY_FROM + PLACE

    def declaring(self, wanted):
        return {'switch': (), 'places': {PLACE: {0, 1} - set(wanted)}}


class Declared:
    """Hosts that declare the place."""

    def test_outcomes(self):
        self.start_hosts('host1', 'host2')
        self.run_table([1], ('host1', 'host2'))
        self.start_hosts('host3', wanted=[0, 1])
        self.run_table([0, 1], ('host3',))


class AllLabels(test_vswitch_rules.AllLabels, Declared):
    """Hosts that also name their nodes."""


class PlaceLabel(Declared):
    """Hosts that do not."""

    labels = base.SWITCH_LABEL
    declares = outcomes.Declares.SWITCH


class AtWithAllLabelsTest(AllLabels, At, PlaceTestCase):
    pass


class AwayWithAllLabelsTest(AllLabels, Away, PlaceTestCase):
    pass


class AtWithPlaceLabelTest(PlaceLabel, At, PlaceTestCase):
    pass


class AwayWithPlaceLabelTest(PlaceLabel, Away, PlaceTestCase):

    def fill_wanted_nodes(self, hosts):
        # A strict guest is taken by none of these hosts.
        whole = self.flavor(vcpus=base.PINNED_CPUS_PER_NODE)
        half = self.flavor()
        for host in hosts:
            first, second, third = (
                self.boot(flavor, host=host)
                for flavor in (whole, half, half))
            self.assertPlaced(first, [0])
            self.assertPlaced(second, [1])
            self.assertPlaced(third, [1])
            self.delete_all([first['id']])


class AtWithNoLabelsTest(test_vswitch_rules.NoLabels, At, PlaceTestCase):

    def test_one_host_declares_the_place(self):
        """The other is no place for a strict guest, though Nova likes it."""
        self.start_hosts('host1', memory_gib=64)
        self.start_host('host2', memory_gib=8, **self.declaring([1]))
        self.assertPlaced(self.boot(self.strict), [1], 'host2')


class AwayWithNoLabelsTest(test_vswitch_rules.NoLabels, Away, PlaceTestCase):

    def test_one_host_declares_nothing(self):
        """It has no such place, so it may be used as it is."""
        self.start_hosts('host1', memory_gib=8)
        self.start_host('host2', memory_gib=64, labels=base.SWITCH_LABEL,
                        **self.declaring([1]))
        self.assertPlaced(self.boot(self.strict), [0], 'host1')
