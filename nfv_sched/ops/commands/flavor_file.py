# SPDX-License-Identifier: Apache-2.0
"""Read flavors, and properties of images, from files.

The files are JSON or YAML: the output of ``openstack flavor list --long`` and
``openstack flavor show``, an answer of Nova's API, or the section ``flavors``
of a cloud file of the simulator.
"""

import collections
from collections.abc import Iterator, Mapping
import re
import typing as ty

from oslo_utils import units

from nfv_sched.base import cpu_spec
from nfv_sched.base import extra_specs
from nfv_sched.base import files
from nfv_sched.ops.answers.flavors import document
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import names
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import values

# Field -> its names in the different sources.
_NAMES = {
    'name': ('name', 'Name'),
    'id': ('id', 'ID', 'flavorid'),
    'vcpus': ('vcpus', 'VCPUs'),
    'memory': ('memory', 'ram', 'RAM', 'memory_mb'),
    'disk': ('disk', 'Disk', 'root_gb'),
    'ephemeral': ('ephemeral', 'Ephemeral', 'OS-FLV-EXT-DATA:ephemeral'),
    'swap': ('swap', 'Swap'),
    'public': ('public', 'Is Public', 'os-flavor-access:is_public',
               'is_public'),
    'disabled': ('disabled', 'OS-FLV-DISABLED:disabled'),
    'extra_specs': ('extra_specs', 'properties', 'Properties'),
}
# Names in lists of the client and answers of the API, where properties that
# are not there were left out.
_WITHOUT_PROPERTIES = frozenset(('RAM', 'OS-FLV-EXT-DATA:ephemeral',
                                 'OS-FLV-DISABLED:disabled'))
#: Fields by which an image is told from a list of properties.
_IMAGE_FIELDS = frozenset((
    'checksum', 'container_format', 'created_at', 'disk_format', 'min_disk',
    'min_ram', 'os_hash_algo', 'os_hidden', 'protected', 'schema', 'size',
    'status', 'tags', 'updated_at', 'virtual_size', 'visibility'))
#: Other fields of an image that are no properties.
_IMAGE_TEXTS = frozenset((
    'direct_url', 'file', 'hash_algo', 'hash_value', 'id', 'is_hidden',
    'is_protected', 'location', 'locations', 'name', 'os_hash_value', 'owner',
    'owner_id', 'properties', 'self', 'store', 'stores', 'url'))
_LIST_FLAVORS = ('"openstack flavor list --long -f json" prints those of a '
                 'cloud')
_SHOW_IMAGE = '"openstack image show IMAGE -f json" prints it'
#: How deep flavors are looked for in a file of another tool.
_DEPTH = 6
_MOST = 1 << 31
#: A property as the client prints it; no quote in a value is escaped.
_PROPERTY = re.compile(
    r"([^\s='\",][^='\",]*)='(.*?)'(?:, (?=[^='\",]+=')|\Z)", re.DOTALL)


def flavors(path: str) -> list[snapshot.Flavor]:
    """Read the flavors in a file; raise a CommandError if it has none."""
    with files.naming(path, errors.CloudUnreadError):
        flavors = list(_iterate_flavors(_read_content(path)))
        titles = collections.Counter(each.name for each in flavors)
        for name, count in titles.items():
            if count > 1:
                raise ValueError('several flavors are named '
                                 + extra_specs.shown(name, 100))
    return flavors


def image(path: str) -> document.Image:
    """Read an image in a file; raise a CommandError if it has none."""
    with files.naming(path, errors.CloudUnreadError):
        return _image(_only_image(_read_content(path)))


def _image(data: ty.Any) -> document.Image:
    if not isinstance(data, Mapping) or not (
            _IMAGE_FIELDS & data.keys() or isinstance(
                data.get('properties'), (Mapping, str))):
        if isinstance(data, Mapping) and any(
                isinstance(value, (Mapping, list)) for value in data.values()):
            raise ValueError(f'neither an image nor properties; {_SHOW_IMAGE}')
        return document.Image(properties=_texts(data, lenient=True))
    memory, disk, size = (
        0 if data.get(key) in (None, '') else _number(data[key], key, 0, most)
        for key, most in (('min_ram', _MOST), ('min_disk', _MOST),
                          ('size', _MOST * units.Gi)))
    # Glance has properties beside the other fields, the client below a key,
    # the SDK both.
    beside = {key: value for key, value in data.items()
              if key not in _IMAGE_FIELDS and key not in _IMAGE_TEXTS}
    below = data.get('properties') or {}
    return document.Image(
        _image_id(data.get('id')),
        {**_texts(beside, lenient=True), **_texts(below, lenient=True)},
        memory, max(disk, -(-size // units.Gi)))


def _only_image(data: ty.Any) -> ty.Any:
    if isinstance(data, Mapping) and isinstance(data.get('images'), list):
        data = data['images']
    elif isinstance(data, Mapping) and isinstance(data.get('image'), Mapping):
        data = data['image']
    if isinstance(data, list):
        if len(data) != 1:
            raise ValueError(f'{len(data)} images, not one; {_SHOW_IMAGE}')
        data, = data
    if isinstance(data, Mapping) and {'ID', 'Name'} <= data.keys() and (
            'Properties' not in data):
        raise ValueError(f'no properties in the file; {_SHOW_IMAGE}')
    return data


def _image_id(value: ty.Any) -> str:
    """Return the UUID of an image, which printed commands use.

    Anyone can choose the name of an image, even one that is another's ID.
    """
    if value in (None, ''):
        return ''
    if not isinstance(value, str) or not names.is_uuid(value):
        raise ValueError(
            f'id {names.UUID.text}, not {extra_specs.shown(value)}')
    return value


def _read_content(path: str) -> ty.Any:
    from nfv_sched.ops.cloud.cloud_file import text as cloud_text
    text = cloud_text.read(path)
    if text.lstrip()[:1] in ('{', '['):
        try:
            data = files.parse_json(text.encode())
            files.check(data)
            return data
        except files.FileLimitError:
            raise
        except ValueError:
            pass  # YAML can begin with these characters, too
    return cloud_text.parse(text, path)[0]


def _iterate_flavors(data: ty.Any) -> Iterator[snapshot.Flavor]:
    if isinstance(data, Mapping):
        if isinstance(data.get('flavor'), Mapping):
            data = data['flavor']
        elif isinstance(data.get('flavors'), (list, Mapping)):
            data = data['flavors']
    if _may_be_flavor(data):
        data = [data]
    if isinstance(data, Mapping):
        entries = [(repr(name), str(name), each)
                   for name, each in data.items()]
    elif isinstance(data, list):
        entries = [(f'[{number}]', None, each)
                   for number, each in enumerate(data)]
    else:
        raise ValueError(f'no flavors in it; {_LIST_FLAVORS}')
    for where, name, each in entries:
        if not _may_be_flavor(each):
            if place := next(_places(data), ''):
                raise ValueError(
                    f'a file of another tool; flavors are in {place}: write '
                    'them alone into a file, as a list or below their names; '
                    f'or {_LIST_FLAVORS}')
            raise ValueError(
                f'{where} is not a flavor: an object with vcpus, ram and '
                f'properties is needed; {_LIST_FLAVORS}')
        try:
            yield _flavor(each, name)
        except ValueError as exc:
            raise ValueError(f'{where}: {exc}') from exc


def _may_be_flavor(data: ty.Any) -> bool:
    return isinstance(data, Mapping) and not data.keys().isdisjoint(
        _NAMES['vcpus'])


def _places(data: ty.Any, where: str = '', depth: int = 0) -> Iterator[str]:
    """Yield where flavors are below what flavors would be in."""
    if depth > _DEPTH or not isinstance(data, (Mapping, list)):
        return
    if _may_be_flavor(data):
        if depth > 1:
            yield where
        return
    pairs = data.items() if isinstance(data, Mapping) else enumerate(data)
    for key, each in pairs:
        step = f'[{key}]' if isinstance(data, list) else (
            '.' * bool(where) + extra_specs.shown_key(str(key)))
        yield from _places(each, f'{where}{step}', depth + 1)


def _flavor(data: Mapping[str, ty.Any], name: str | None) -> snapshot.Flavor:
    """Return a flavor; ``name`` is that under which it is in the file."""
    fields = {field: next((data[key] for key in keys if key in data), None)
              for field, keys in _NAMES.items()}
    name = name if fields['name'] is None else str(fields['name'])
    if not name:
        raise ValueError('it has no name')
    for key, value in (('name', name), ('id', str(fields['id'] or ''))):
        if not names.is_printable(value):
            raise ValueError(f'{key} {names.PRINTABLE.text}, not '
                             + extra_specs.shown(value))
    specs = fields['extra_specs']
    if _WITHOUT_PROPERTIES.intersection(data) and not (
            data.keys() & {*_NAMES['extra_specs']}):
        raise ValueError(
            'no properties in the file; "openstack flavor list --long -f '
            'json" prints them, and Nova from microversion 2.61')
    return snapshot.Flavor(
        name=name, id=str(fields['id'] or ''),
        vcpus=_number(fields['vcpus'], 'vcpus', 1, cpu_spec.MOST_CPUS),
        memory=_size(fields['memory']), disk=_size(fields['disk'], 'disk'),
        ephemeral=_size(fields['ephemeral'], 'ephemeral'),
        swap=_size(fields['swap'], 'swap'),
        public=fields['public'] is not False,
        disabled=fields['disabled'] is True,
        extra_specs=_texts({} if specs is None else specs))


def _number(value: ty.Any, what: str, least: int, most: int) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not (
            least <= value < most):
        raise ValueError(f'{what} must be a number from {least} to '
                         f'{most - 1}, not {extra_specs.shown(value)}')
    return value


def _size(value: ty.Any, what: str = '') -> int:
    """Return memory in MiB, or the amount ``what``, 0 if missing."""
    if what and value in (None, ''):
        return 0
    if isinstance(value, str) and not value.isdecimal():
        try:
            value = (values.parse_gib if what in ('disk', 'ephemeral')
                     else values.parse_mib)(value)
        except ValueError as exc:
            raise ValueError(f'{what or "ram"}: {exc}') from exc
    return _number(value, what or 'ram', 0 if what else 1, _MOST)


def _texts(data: ty.Any, lenient: bool = False) -> dict[str, str]:
    """Return properties as texts; ``lenient`` skips others."""
    if isinstance(data, str):
        return _parse_printed(data)
    if not isinstance(data, Mapping):
        raise ValueError('properties must be an object with a value for each '
                         f'key, not {extra_specs.shown(data)}')
    texts = {}
    for key, value in data.items():
        if isinstance(value, values.Scalar):
            texts[str(key)] = values.parse_text(value)
        elif not lenient:
            raise ValueError(f'properties: {key} must be a text, not '
                             + extra_specs.shown(value))
    return texts


def _parse_printed(text: str) -> dict[str, str]:
    properties: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _PROPERTY.match(text, position)
        # Not "a='1' b='2'" with a value of "1' b='2".
        if match is None or match[1] in properties or "='" in match[2]:
            raise ValueError(
                "properties must be an object, or a text such as a='1', "
                f"b='2', not {extra_specs.shown(text)}")
        properties[match[1]] = match[2]
        position = match.end()
    return properties
