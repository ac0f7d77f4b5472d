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

"""The network of a simulated cloud, instead of Neutron."""

from collections.abc import Iterator
import contextlib

from nfv_sched.network import neutron


class _Unknown:
    """A source that knows nothing."""

    def get(self) -> None:
        return None

    def is_fresh(self, snapshot: object) -> bool:
        return False


@contextlib.contextmanager
def simulated() -> Iterator[None]:
    """Filters and weighers look here and not at a real Neutron."""
    source, neutron.SOURCE = neutron.SOURCE, _Unknown()
    try:
        yield
    finally:
        neutron.SOURCE = source
