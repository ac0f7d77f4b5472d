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
"""The filter for pinned guests with one vCPU on shared CPUs."""

from nfv_sched.filters import base
from nfv_sched.rules import shared_vcpu


class SharedVCPUFilter(base.RuleFilter):
    """Place guests that run one vCPU on the shared CPUs of their NUMA node.

    ``nfv:shared_vcpu=N`` with ``hw:cpu_policy=mixed``: vCPU N runs on shared
    CPUs of the host NUMA node that takes its guest NUMA node, which then holds
    no more than ``[nfv_sched] shared_vcpus_per_core`` shared vCPUs for each
    of its shared cores.  The claim on the compute node is held to that by a
    lower CPU allocation ratio.
    """

    rule = shared_vcpu.SharedVCPURule
