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
"""The extra spec, for the validation of the Nova API."""

from nova.api.validation.extra_specs import base

from nfv_sched import extra_specs


def register():
    """The validators; called by ``nova-api``."""
    return [base.ExtraSpecValidator(
        name='nfvx:even_nodes',
        description='Whether the guest runs on even host NUMA nodes only.',
        value={'type': str, 'enum': list(extra_specs.AFFINITIES)})]
