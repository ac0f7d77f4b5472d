# SPDX-License-Identifier: Apache-2.0
"""Read the properties of an image from Glance.

Images are not part of a snapshot: a cloud has many, and few are asked for.
"""

from collections.abc import Mapping
import typing as ty
import urllib.parse

from openstack import connection as sdk_connection

from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import names
from nfv_sched.ops.model.requests import nova_account
from nfv_sched.ops.simulator import nova_internals

_PATH = '/images'
# Number of images among which the nearest names are looked for.
_PAGE = 1000


def properties(name: str) -> dict[str, str]:
    """Return the properties of an image that Nova knows.

    :param name: its ID, or its name if no other image has it
    :raises NotInCloudError: if no image or several match
    :raises CloudUnreadError: if Glance cannot be read
    """
    with nova_account.reading(
            'image', 'the image API', errors.CloudUnreadError) as connection:
        image = _find(connection, name)
    texts = {key: value for key, value in image.items()
             if isinstance(value, str)}
    unknown = nova_internals.unknown_image_properties(texts)
    return {key: value for key, value in texts.items() if key not in unknown}


def _find(connection: sdk_connection.Connection,
          name: str) -> Mapping[str, ty.Any]:
    if names.is_uuid(name):
        if (image := _get(connection, f'{_PATH}/{name}')) is not None:
            return image
    if not (images := _list_images(connection, {'name': name})):
        raise errors.NotInCloudError(names.unknown('image', name, [
            each['name'] or '' for each in _list_images(
                connection, {'limit': str(_PAGE)})]))
    if len(images) > 1:
        raise errors.NotInCloudError(
            f'several images named {name!r}: ' +
            ', '.join(sorted(each['id'] for each in images)))
    return images[0]


def _list_images(connection: sdk_connection.Connection,
                 query: Mapping[str, str]) -> list[Mapping[str, ty.Any]]:
    body = _get(connection, f'{_PATH}?{urllib.parse.urlencode(query)}')
    return list((body or {})['images'])


def _get(connection: sdk_connection.Connection, path: str) -> ty.Any:
    """Return an answer; None if there is no such object."""
    response = connection.image.get(path)
    if response.status_code == 404:
        return None
    if response.status_code != 200:
        raise errors.CloudUnreadError(
            f'the image API cannot be read: GET {path}: '
            f'{response.status_code} {response.reason}')
    return response.json()
