# SPDX-License-Identifier: Apache-2.0
"""Load the classes that packages register as entry points."""

from importlib import metadata
import logging

from stevedore import extension

LOG = logging.getLogger(__name__)


def classes(group: str) -> list[type]:
    # One that cannot be loaded is logged and left out, so that Nova refuses to
    # start only if it is enabled.
    manager = extension.ExtensionManager(
        group, on_load_failure_callback=lambda _manager, entry, error: (
            LOG.error('%s of %s cannot be loaded: %s', entry.name,
                      entry.group, error)))
    return [ext.plugin for ext in sorted(manager, key=lambda ext: ext.name)]


def names(group: str) -> set[str]:
    """Return the names in an entry-point group, and those of modules."""
    return {name for entry_point in metadata.entry_points(group=group)
            for name in (entry_point.name,
                         entry_point.module.rpartition('.')[2])}
