# SPDX-License-Identifier: Apache-2.0
"""Replace the names and UUIDs in a snapshot, so that it can be shared.

Each string is split into words.  Words that Nova, Placement or nfv-sched
define are kept, as are numbers and PCI addresses.  Any other word is replaced
by an invented one, the same everywhere: equal strings stay equal, so that
scheduling decisions do not change.  Where anybody may define keys, in extra
specs, metadata and tags, numbers are replaced, too, unless Nova or nfv-sched
reads those of the key.  New fields of a snapshot are treated this
way unless they have a handler here.  Invented names are drawn at random each
time, and no list of them is saved.  With a secret key, a name gets the same
invented name each time, unless two would get the same one.
"""

import collections
from collections.abc import Callable, Iterable, Mapping
import dataclasses
import functools
import hashlib
import hmac
import json
import random
import re
import typing as ty
import uuid

from nfv_sched.base import conf
from nfv_sched.base import extensions
from nfv_sched.fit.rules import place
from nfv_sched.limits import names as ledger_names
from nfv_sched.ops.cloud import marks
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot

_NO_NAME = re.compile(r'[^0-9A-Z_]+')

# Anything but white space and ASCII punctuation other than "-", "." and "_".
_RUN = re.compile(r'[^\s!"#$%&\'()*+,/:;<=>?@\[\\\]^`{|}~]+')
_UUID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}',
                   re.IGNORECASE | re.ASCII)
# Numbers, spans of CPUs, and sizes.
_NUMBER = re.compile(
    r'-?\d{1,10}(?:\.\d{1,9})?(?:-\d{1,10}|[kKMGT]i?[bB]?|bit|[bB])?',
    re.ASCII)
_NUMBERS_WITH_DOTS = re.compile(r'[\d.]+', re.ASCII)
_ADDRESS = re.compile(
    r'[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]', re.IGNORECASE)
_HEX_ID = re.compile('[0-9a-f]{4}', re.IGNORECASE)
_PCI_CLASS = re.compile('CUSTOM_PCI_[0-9A-F]{4}_[0-9A-F]{4}')
_TIME = re.compile(r'\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[0-9.:+-]*Z?', re.ASCII)
_VERSION = re.compile(r'\d{1,4}(\.\d{1,6})*((a|b|rc|\.dev|\.post)\d{1,6})?',
                      re.ASCII)
_MAC = re.compile(r'(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}', re.IGNORECASE)
# Prefixes of words that have a meaning for Nova or nfv-sched.
_PREFIXES = ('num_proj_', 'num_vm_', 'num_task_', 'num_os_type_',
             'filter_tenant_id', 'resources', 'trait', 'CUSTOM_', 'nfv_')

# Scheduler hints of Nova whose values are UUIDs of servers and groups.
_HINTS = ('group', 'same_host', 'different_host')
_PHYSNET_TRAIT = 'CUSTOM_PHYSNET_'
# Metadata of aggregates with names or UUIDs, separated by commas.
_ZONE = 'availability_zone'
_TENANT = 'filter_tenant_id'
_FLAVORS = 'instance_type'
# Metadata of aggregates with numbers that are no options of the scheduler.
_RATIOS = ('cpu_allocation_ratio', 'ram_allocation_ratio',
           'disk_allocation_ratio')
# Extra specs that are compared with metadata of aggregates, and the operators
# that compare numbers.
_COMPARED = 'aggregate_instance_extra_specs'
_OPERATORS = ('=', '==', '!=', '>=', '<=')
# Keys of data that identify a single device; even numbers are dropped.
_SERIAL = re.compile(r'serial|mac_address|asset|part_number', re.IGNORECASE)
_PHYSNET = 'physical_network'
_DEVICE_IDS = ('vendor_id', 'product_id')
#: Numbers of names by a key are below this, unless they are used.
KEYED_NUMBERS = 10 ** 8
# Options that name an availability zone.
_ZONES = ('default_schedule_zone', 'default_availability_zone')

_Kind = snapshot.Kind
# Kinds of texts that are not replaced by a word and a number.
_NO_NAMES = (_Kind.UUID, _Kind.TIME, _Kind.VERSION, _Kind.PCI_ADDRESS,
             _Kind.PCI_ID)
# Names that stay, by kind.
_UNCHANGED = {_Kind.CELL: ('', 'cell0'), _Kind.ZONE: ('', 'nova')}

# Lists of a cloud.
_SORTED = ('hosts', 'servers', 'flavors', 'aggregates', 'groups', 'moves',
           'network_agents', 'network_services', 'networks')


class AnonymizedCloud(ty.NamedTuple):
    cloud: snapshot.Cloud
    #: field -> number of strings in which unknown words were replaced, for
    #: fields that do not hold names
    replaced: Mapping[str, int]


def replace(cloud: snapshot.Cloud,
            key: bytes | None = None) -> AnonymizedCloud:
    """Anonymize a cloud, by a secret key or at random."""
    anonymizer = _Anonymizer(cloud, key)
    return AnonymizedCloud(anonymizer.cloud(), anonymizer.replaced)


class _KeyedNumbers:
    """Numbers that depend on a key and a name, none of them twice."""

    def __init__(self, key: bytes):
        self._key = key
        self._used: set[int] = set()

    def digest(self, word: str, name: str) -> bytes:
        return hmac.digest(
            self._key, f'{word} {name}'.encode('utf-8', 'surrogatepass'),
            hashlib.sha256)

    def __call__(self, word: str, name: str) -> int:
        number = int.from_bytes(self.digest(word, name)[:8]) % KEYED_NUMBERS
        while number in self._used:
            number += 1
        self._used.add(number)
        return number


class _NewNames:
    """New names for old ones: a word and a number, at random if not keyed."""

    def __init__(self, word: str, names: Iterable[str],
                 unchanged: Iterable[str], keyed: _KeyedNumbers | None):
        self._word = word
        self._keyed = keyed
        old = sorted(set(names).difference(unchanged))
        self.numbers = dict(zip(old, random.SystemRandom().sample(
            range(1, len(old) + 1), len(old)) if keyed is None else (
                keyed(word, name) for name in old)))
        self._unchanged = frozenset(unchanged)

    def number(self, name: str) -> int:
        if name not in self.numbers:
            self.numbers[name] = (
                len(self.numbers) + 1 if self._keyed is None
                else self._keyed(self._word, name))
        return self.numbers[name]

    def __call__(self, name: str) -> str:
        return name if name in self._unchanged else (
            f'{self._word}{self.number(name)}')


class _Anonymizer:

    def __init__(self, cloud: snapshot.Cloud, key: bytes | None):
        # Imported late: they import Nova, which takes seconds.
        from nfv_sched.nova import scheduler
        from nfv_sched.nova import vocabulary
        conf.register_opts(scheduler.CONF)
        self._vocabulary = vocabulary
        self._keep = vocabulary.words().union(
            (ledger_names.PORTS, ledger_names.RULES, ledger_names.TRAIT,
             place.VSWITCH),
            [name for host in cloud.hosts for provider in host.providers
             for name in provider.inventories
             if ledger_names.is_of_node(name)],
            # Aggregates may override options, by their names in metadata.
            *map(vocabulary.options, ('nfv_sched', 'filter_scheduler')),
            extensions.names('nfv_sched.filters'),
            extensions.names('nfv_sched.weighers'))
        self._cloud = cloud
        self._labels = scenario.label_names(cloud)
        self.replaced: collections.Counter[str] = collections.Counter()
        self._uuids: dict[str, str] = {}
        self._keyed = None if key is None else _KeyedNumbers(key)
        self._words = _NewNames('word', (), (), self._keyed)
        self._variants: collections.Counter[str] = collections.Counter()
        self._text = functools.cache(self._new_text)
        self._invent = functools.cache(self._new_word)
        # Metadata that extra specs are compared with as numbers.
        self._compared = {
            name.removeprefix(f'{_COMPARED}:')
            for flavor in (*cloud.flavors, *(
                server.flavor for server in cloud.servers))
            for name, value in flavor.extra_specs.items()
            if value.split()[:1] and value.split()[0] in _OPERATORS}
        names = self._all_names()
        self._new = {
            kind: _NewNames(kind, names[kind], _UNCHANGED.get(kind, ('',)),
                            self._keyed)
            for kind in _Kind if kind not in _NO_NAMES}
        self._physnet = self._new[_Kind.PHYSNET]
        self._traits = {
            _trait_part(name): _trait_part(self._physnet(name))
            for name in names[_Kind.PHYSNET]}
        for host in cloud.hosts:
            # The tools derive the UUID of a host's ledger from the host's.
            self._uuids[ledger_names.provider_uuid(host.uuid)] = (
                ledger_names.provider_uuid(self._uuid(host.uuid)))
        self._named: dict[str, Callable[[str], str]] = {
            name: new for new in self._new.values() for name in new.numbers}
        self._handlers = self._all_handlers()

    def _all_names(self) -> dict[snapshot.Kind, set[str]]:
        cloud = self._cloud
        names: dict[snapshot.Kind, set[str]] = collections.defaultdict(set)
        for _path, kind, text in marks.find(snapshot.Cloud, cloud, _Kind):
            names[kind].add(text)
        defaults = cloud.options.get('DEFAULT', {})
        names[_Kind.ZONE].update(
            defaults[name] for name in _ZONES if defaults.get(name))
        for aggregate in cloud.aggregates:
            names[_Kind.FLAVOR].update(
                _split(aggregate.metadata.get(_FLAVORS, '')))
        for tags in (
                *(device.tags for host in cloud.hosts
                  for device in host.devices),
                *(tags for server in cloud.servers
                  for request in server.pci_requests or ()
                  for tags in request.specs)):
            names[_Kind.PHYSNET].add(tags.get(_PHYSNET) or '')
        labels = self._labels
        names[_Kind.PHYSNET] = {
            name for name in names[_Kind.PHYSNET]
            if name not in ('', labels.vswitch) and labels.node(name) is None
            and not name.startswith(place.PREFIX)}
        return names

    def _all_handlers(self) -> dict[
            tuple[type, str], Callable[[ty.Any], ty.Any]]:
        of_kind: Mapping[snapshot.Kind, Callable[[str], str]] = {
            **self._new, _Kind.UUID: self._uuid, _Kind.PHYSNET: self._label,
            _Kind.PCI_ADDRESS: functools.partial(self._unless, _ADDRESS),
            _Kind.PCI_ID: functools.partial(self._unless, _HEX_ID),
            _Kind.TIME: lambda text: text if _TIME.fullmatch(text) else '',
            _Kind.VERSION: lambda text: (_VERSION.match(text) or ('',))[0]}
        return {
            **{(part, name): functools.partial(
                self._value, change=of_kind[kind])
               for part in vars(snapshot).values()
               if dataclasses.is_dataclass(part)
               for name, hint in marks.fields_with(part, _Kind).items()
               for kind in marks.parts(hint) if isinstance(kind, _Kind)},
            (snapshot.Missing, 'kind'): lambda kind: kind,
            # Errors may contain any name.
            (snapshot.Cloud, 'source'): lambda _text: '',
            (snapshot.Missing, 'text'): lambda _text: '',
            (snapshot.Host, 'disabled_reason'):
                lambda text: text and 'dropped',
            (snapshot.Cloud, 'options'): self._options,
            # A name, such as that of an Ironic node, may be the same UUID.
            (snapshot.Cloud, 'consumers'): lambda consumers: {
                self._uuid(consumer): self._allocations(each)
                for consumer, each in consumers.items()},
            (snapshot.Server, 'allocations'): self._allocations,
            (snapshot.Server, 'fault'): lambda _text: None,
            (snapshot.Server, 'image'): lambda image: {
                self._text(name): self._text(value, self._is_image(name))
                for name, value in image.items()
                if self._vocabulary.is_image_property(name)},
            (snapshot.Server, 'hints'): lambda hints: {
                name: tuple(map(self._uuid, values))
                for name, values in hints.items() if name in _HINTS},
            (snapshot.Flavor, 'extra_specs'): self._extra_specs,
            (snapshot.Device, 'tags'): self._tags,
            (snapshot.PCIRequest, 'specs'):
                lambda specs: tuple(map(self._tags, specs)),
            (snapshot.Aggregate, 'metadata'): self._metadata,
            # Sort them, too.
            (snapshot.Aggregate, 'hosts'):
                lambda names: tuple(sorted(map(self._new[_Kind.HOST], names))),
            (snapshot.NetworkAgent, 'serves'):
                lambda ids: tuple(sorted(map(self._uuid, ids))),
            # See _host_object().
            (snapshot.Host, 'hypervisor'): lambda name: name,
            (snapshot.Provider, 'name'): lambda name: name}

    def cloud(self) -> snapshot.Cloud:
        cloud = self._object(self._cloud)
        # Sort by ID and name, as the order would reveal that of the old names.
        return dataclasses.replace(cloud, anonymous=True, **{
            name: tuple(sorted(values, key=lambda value: [
                getattr(value, field.name)
                for field in dataclasses.fields(value)[:2]]))
            for name in _SORTED
            if (values := getattr(cloud, name)) is not None})

    def _object(self, value: ty.Any) -> ty.Any:
        kind = type(value)
        fields = {}
        for field in dataclasses.fields(kind):
            old = getattr(value, field.name)
            if old is None or old.__class__ in (int, bool, float):
                continue
            if (handler := self._handlers.get((kind, field.name))) is not None:
                fields[field.name] = handler(old)
                continue
            fields[field.name] = self._value(old)
            if fields[field.name] != old and not any(map(
                    dataclasses.is_dataclass,
                    old if isinstance(old, tuple) else (old,))):
                self._count(kind, field.name)
        new = dataclasses.replace(value, **fields)
        return self._host_object(value, new) if kind is snapshot.Host else new

    def _count(self, kind: type, field: str) -> None:
        self.replaced[f'{kind.__name__} {field}'.lower()] += 1

    def _value(self, value: ty.Any,
               change: Callable[[str], str] | None = None) -> ty.Any:
        """Replace the texts in a value; ``change`` replaces one of them."""
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, str):
            return (change or self._text)(value)
        if isinstance(value, Mapping):
            return {self._value(key, change): self._value(each, change)
                    for key, each in value.items()}
        if isinstance(value, tuple | frozenset | list):
            return value.__class__([self._value(each, change)
                                    for each in value])
        if dataclasses.is_dataclass(value):
            return self._object(value)
        raise TypeError(f'a snapshot cannot have a {type(value)}')

    def _new_text(self, text: str, numbers: bool = True) -> str:
        """Replace unknown words in a string; ``numbers`` keeps its numbers."""
        if text in self._named and text not in self._keep and not (
                numbers and _NUMBER.fullmatch(text)):
            return self._named[text](text)
        if text[:1] in ('{', '['):
            try:
                data = json.loads(text)
            except (ValueError, RecursionError):
                pass
            else:
                return json.dumps(self._data(data, numbers))
        text = _MAC.sub(lambda match: self._invent(match[0]), text)
        return _RUN.sub(lambda match: self._word(match[0], numbers), text)

    def _data(self, data: ty.Any, numbers: bool) -> ty.Any:
        """Replace the strings in parsed JSON, and drop serial numbers."""
        if isinstance(data, dict):
            return {self._text(key, numbers): self._data(value, numbers)
                    for key, value in data.items() if not _SERIAL.search(key)}
        if isinstance(data, list):
            return [self._data(each, numbers) for each in data]
        if isinstance(data, str):
            return self._text(data, numbers)
        if not numbers and data.__class__ in (int, float):
            return 0
        # Long numbers may identify a card or a customer.
        if isinstance(data, int | float) and (
                len(re.sub('[^0-9]', '', repr(data))) > 10):
            return 0
        return data

    def _word(self, word: str, numbers: bool = True) -> str:
        if not numbers and _NUMBER.fullmatch(word):
            return self._named.get(word, self._invent)(word)
        if (word in self._keep or word.lower() in ('true', 'false') or
                _NUMBER.fullmatch(word) or _PCI_CLASS.fullmatch(word)):
            return word
        if _UUID.fullmatch(word):
            return self._uuid(word)
        if word in self._named:
            return self._named[word](word)
        if word == self._labels.vswitch or (
                self._labels.node(word) is not None):
            return self._label(word)
        if word.startswith(_PHYSNET_TRAIT):
            part = word.removeprefix(_PHYSNET_TRAIT)
            return _PHYSNET_TRAIT + (
                self._traits.get(part) or _trait_part(self._physnet(part)))
        if '.' in word and not _NUMBERS_WITH_DOTS.fullmatch(word):
            return '.'.join(self._word(part, numbers) if part else ''
                            for part in word.split('.'))
        for prefix in _PREFIXES:
            rest = word.removeprefix(prefix)
            if rest != word and rest:
                if prefix == 'CUSTOM_':
                    return f'{prefix}WORD{self._words.number(rest)}'
                separator = '_' if rest[0] == '_' and len(rest) > 1 else ''
                return prefix + separator + self._word(
                    rest.removeprefix(separator), numbers)
        return self._invent(word)

    def _new_word(self, word: str) -> str:
        # device_spec may write a resource class in another way than
        # Placement: both forms must stay the same class.
        part = _trait_part(word)
        count = self._variants[part]
        self._variants[part] += 1
        return f'{self._words(part)}{"x" * count}'

    def _host_object(self, old: snapshot.Host,
                     new: snapshot.Host) -> snapshot.Host:
        """Rename hypervisor and resource providers to match the host."""
        name = new.name if old.hypervisor == old.name else (
            self._new[_Kind.HYPERVISOR](old.hypervisor))
        return dataclasses.replace(
            new, hypervisor=name, providers=tuple(
                dataclasses.replace(new_provider, name=self._provider_name(
                    old, old_provider, name, new_provider))
                for old_provider, new_provider in zip(
                    old.providers, new.providers)))

    @staticmethod
    def _provider_name(host: snapshot.Host, old: snapshot.Provider,
                       name: str, new: snapshot.Provider) -> str:
        if old.name == host.hypervisor:
            return name
        # Names of devices' and the ledger's providers begin with the
        # name of the hypervisor.
        rest = old.name.removeprefix(f'{host.hypervisor}_')
        if old.name != rest and (_ADDRESS.fullmatch(rest) or (
                rest == 'nfv_ledger' and
                old.uuid == ledger_names.provider_uuid(host.uuid))):
            return f'{name}_{rest}'
        return f'{name}_{new.uuid[:8]}'

    def _uuid(self, old: str) -> str:
        if not old:
            return old
        if (new := self._uuids.get(old)) is None:
            drawn = uuid.uuid4() if self._keyed is None else uuid.UUID(
                bytes=self._keyed.digest('UUID', old)[:16], version=4)
            new = self._uuids[old] = (
                str(drawn) if '-' in old or len(old) != 32 else drawn.hex)
        return new

    def _label(self, physnet: str) -> str:
        labels = self._labels
        if physnet == labels.vswitch:
            return self._word(physnet) if physnet in self._keep else (
                self._invent(physnet))
        if (number := labels.node(physnet)) is not None:
            return f'{self._node_prefix()}{number}'
        if physnet.startswith(place.PREFIX):
            # Replace it as in extra specs, which contain the same name.
            name = physnet.removeprefix(place.PREFIX)
            return place.PREFIX + (
                self._word if _RUN.fullmatch(name) else self._invent)(name)
        return self._physnet(physnet)

    def _node_prefix(self) -> str:
        prefix = self._labels.node_prefix
        return prefix if prefix in self._keep else (f'{self._invent(prefix)}_')

    def _unless(self, pattern: re.Pattern[str], text: str) -> str:
        """Replace the words in a text that does not match a pattern."""
        return text if pattern.fullmatch(text) else self._text(text)

    def _tags(self, tags: Mapping[str, str | None]) -> dict[str, str | None]:
        new: dict[str, str | None] = {}
        for name, value in tags.items():
            if _SERIAL.search(name):
                continue
            new[self._text(name, False)] = value if not value else (
                self._label(value) if name == _PHYSNET else
                self._unless(_HEX_ID, value) if name in _DEVICE_IDS else
                self._text(value, name in self._keep))
        return new

    def _extra_specs(self, specs: Mapping[str, str]) -> dict[str, str]:
        new = {}
        for name, value in specs.items():
            numbers = self._vocabulary.is_extra_spec(name)
            new[self._text(name, numbers)] = self._text(
                value, numbers or
                name.removeprefix(f'{_COMPARED}:') in self._compared)
        if new != specs:
            self._count(snapshot.Flavor, 'extra_specs')
        return new

    def _allocations(self, allocations: Mapping[str, Mapping[str, int]],
                     ) -> dict[str, Mapping[str, int]]:
        return {self._uuid(provider): self._value(amounts)
                for provider, amounts in allocations.items()}

    def _is_image(self, name: str) -> bool:
        return self._vocabulary.is_image_property(name) and (
            self._vocabulary.is_extra_spec(name) if ':' in name
            else self._text(name) == name)

    def _metadata(self, metadata: Mapping[str, str]) -> dict[str, str]:
        new = {self._text(name, False): self._metadatum(name, value)
               for name, value in metadata.items()}
        if new != metadata:
            self._count(snapshot.Aggregate, 'metadata')
        return new

    def _metadatum(self, name: str, value: str) -> str:
        if name == _ZONE:
            return self._new[_Kind.ZONE](value)
        if name.startswith(_TENANT):
            return _change_each(value, self._uuid)
        if name == _FLAVORS:
            return _change_each(value, self._new[_Kind.FLAVOR])
        return self._text(value, (
            name in self._compared or name in _RATIOS or
            self._is_image(name) or
            any(name in self._vocabulary.options(section)
                for section in ('nfv_sched', 'filter_scheduler'))))

    def _options(self, options: Mapping[str, Mapping[str, ty.Any]],
                 ) -> dict[str, dict[str, ty.Any]]:
        """Replace the values of options; unknown options are dropped."""
        changes: Mapping[tuple[str, str], Callable[[str], str]] = {
            ('filter_scheduler', 'isolated_hosts'): self._new[_Kind.HOST],
            ('filter_scheduler', 'isolated_images'): self._uuid,
            ('nfv_sched', 'vswitch_label'): self._label,
            ('nfv_sched', 'node_label_prefix'):
                lambda _prefix: self._node_prefix(),
            # A path on this machine, useless elsewhere.
            ('nfv_sched', 'decision_journal'): lambda _path: '',
            **{('DEFAULT', zone): self._new[_Kind.ZONE] for zone in _ZONES}}
        return {
            section: {
                name: self._value(value, changes.get((section, name))
                                  if value else None)
                for name, value in values.items() if name in names}
            for section, values in options.items()
            if (names := self._vocabulary.options(section))}


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(',')]


def _change_each(text: str, change: Callable[[str], str]) -> str:
    return ','.join(map(change, _split(text)))


def _trait_part(name: str) -> str:
    return _NO_NAME.sub('_', name.upper())
