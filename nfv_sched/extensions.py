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
"""Load the classes that packages register as entry points."""

from oslo_log import log as logging
from stevedore import extension

LOG = logging.getLogger(__name__)


def _failed(_manager, entry_point, error) -> None:
    LOG.error('%s of %s cannot be loaded: %s', entry_point.name,
              entry_point.group, error)


def classes(group: str) -> list[type]:
    """The classes of an entry-point group, in order of their names.

    One that cannot be loaded is logged and left out, so that Nova refuses to
    start only if it is enabled.

    :param group: name of the group
    """
    manager = extension.ExtensionManager(
        group, on_load_failure_callback=_failed)
    return [ext.plugin for ext in sorted(manager, key=lambda ext: ext.name)]
