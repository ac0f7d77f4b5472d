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
"""A filter and a weigher of another plugin, for the tests."""

from nova.scheduler import filters
from nova.scheduler import weights


class LicenceFilter(filters.BaseHostFilter):
    """Passes every host."""

    RUN_ON_REBUILD = False

    def host_passes(self, host_state, spec_obj):
        return True


class LicenceWeigher(weights.BaseHostWeigher):
    """Weighs all hosts alike."""

    def _weigh_object(self, host_state, weight_properties):
        return 0.0
