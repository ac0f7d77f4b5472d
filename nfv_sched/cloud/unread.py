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
"""Which cell it is that a sentence says could not be read.

The sentences are those of :class:`nfv_sched.nova.records.Cells`.  Cells are
named there as Nova does in its logs, and hosts have the name alone.
"""

import re

_CELL = re.compile(
    r'Cell (?:[0-9a-f-]{36}\((?P<name>.+?)\)|(?P<only>.+?)) '
    r'(?P<what>cannot be read|does not answer in time)', re.DOTALL)


def cell(text: str) -> tuple[str, str] | None:
    """The name of a cell that could not be read, and what is said of it.

    :param text: one of the sentences of ``Cloud.missing``
    :returns: None if it is about no cell
    """
    found = _CELL.match(text)
    if found is None:
        return None
    return found['name'] or found['only'], found['what']
