# SPDX-License-Identifier: Apache-2.0
"""A filter and a weigher of another plugin, for the tests."""

from nova.scheduler import filters
from nova.scheduler import weights


class LicenceFilter(filters.BaseHostFilter):
    RUN_ON_REBUILD = False

    def host_passes(self, host_state, spec_obj):
        return True


class LicenceWeigher(weights.BaseHostWeigher):
    def _weigh_object(self, host_state, weight_properties):
        return 0.0
