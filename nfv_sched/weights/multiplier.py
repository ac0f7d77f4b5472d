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
"""The multiplier of a weigher."""

import functools

from nova.scheduler import weights

from nfv_sched import conf
from nfv_sched.nova import scheduler

CONF = scheduler.CONF
conf.register_opts(CONF)


class MultipliedWeigher(weights.BaseHostWeigher):
    """A weigher with a multiplier that aggregates can set.

    Nova asks for the multiplier of each host after it has had all of them
    weighed, which is to begin with :meth:`read_multipliers`.
    """

    #: Option, and aggregate metadata, with the multiplier.
    multiplier: str
    #: Section with the option.
    group = 'nfv_sched'

    def __init__(self):
        super().__init__()
        self._multipliers: scheduler.PerAggregates[float] | None = None

    def _read(self) -> scheduler.PerAggregates[float]:
        return scheduler.PerAggregates(functools.partial(
            scheduler.weight_multiplier, name=self.multiplier,
            default=CONF[self.group][self.multiplier]))

    def read_multipliers(self) -> None:
        """Read the option anew, and aggregates once for hosts alike in them.

        If another thread does so in between, what it reads is as good.
        """
        self._multipliers = self._read()

    def weight_multiplier(self, host_state):
        """The option, or the metadata of the host's aggregates."""
        return (self._multipliers or self._read()).of(host_state)
