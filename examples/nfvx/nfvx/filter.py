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
"""The filter for guests that want even host NUMA nodes."""

from nfv_sched.filters import base
from nfvx import rule


class EvenNodesFilter(base.RuleFilter):
    """Place guests on host NUMA nodes with even numbers.

    ``nfvx:even_nodes=strict``: all NUMA nodes of the guest are on such nodes,
    or the host is refused.  ``prefer``: every host passes.
    """

    rule = rule.EvenNodesRule
