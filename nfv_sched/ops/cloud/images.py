# SPDX-License-Identifier: Apache-2.0
"""Leave out image properties that do not matter for scheduling."""

from collections.abc import Mapping

_OTHER = ('base_image_ref', 'owner', 'boot_roles', 'stores', 'disk_format',
          'container_format')
# Of properties that describe where an image came from.
_OTHER_PREFIXES = ('owner_', 'user_id', 'instance_uuid', 'clean_', 'image_',
                   'os_glance_', 'os_hash_')


def properties(stored: Mapping[str, str]) -> dict[str, str]:
    """Return those of the image properties of a server that matter."""
    # NOTE: The API of Nova 31 shows them as Nova's database has them.
    return {name: text for name, text in stored.items()
            if name not in _OTHER and not name.startswith(_OTHER_PREFIXES)}
