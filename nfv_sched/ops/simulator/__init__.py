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
"""A simulated cloud, scheduled and claimed by Nova's own code.

``start`` makes the ``state`` of a cloud file or a snapshot, ``engine`` runs
steps on it, each with a function of ``steps``; ``expectations`` compares their
outcomes with what the file expects; ``report`` makes tables of the result.
No service, database or network is needed, and no
guest is started: the simulator answers where Nova would place a guest, which
CPUs it would get there, and why it would be refused.
"""
