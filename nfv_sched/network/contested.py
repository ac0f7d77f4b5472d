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
"""A list that acts when Nova tests it, where Nova has no hook."""

from nova import exception
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class Contested(list):
    """A list of allocation candidates that takes room when Nova tests it.

    Right before Nova claims the first allocation candidate of a host, it tests
    whether there are any, by the truth value of the list.  If that is false,
    Nova goes on to the next host.

    :ivar take: called with the next two; returns whether there is room, or
        raises NoValidHost
    :ivar network: the network note of the request
    :ivar host: weak reference to the HostState; a strong one would keep it
        longer than its request
    """

    __slots__ = ('take', 'network', 'host')

    def __bool__(self):
        if not len(self):
            return False
        try:
            return self.take(self.network, self.host)
        except exception.NoValidHost:
            raise
        except Exception:
            LOG.exception('Room on a host cannot be taken; Nova claims it '
                          'all the same')
            return True
