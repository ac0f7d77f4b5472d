# SPDX-License-Identifier: Apache-2.0
"""Parse the placement policies of a flavor and an image, once per request.

Bad values and contradictions do not raise: they are collected in
:attr:`NFVPolicy.errors`, and a filter refuses every host because of them.
"""

from collections.abc import Mapping
import dataclasses
import difflib
import functools
import re
import typing as ty

from nfv_sched.base import extensions

STRICT = 'strict'
PREFER = 'prefer'
SOCKET = 'socket'
LEGACY = 'legacy'

AFFINITIES = (STRICT, PREFER)

VSWITCH_NUMA_AFFINITY = 'nfv:vswitch_numa_affinity'
PCI_NUMA_AFFINITY = 'nfv:pci_numa_affinity'
SHARED_VCPU = 'nfv:shared_vcpu'
# Followed by the number of a guest NUMA node.
NUMA_NODE = 'nfv:numa_node.'

NAMESPACE = 'nfv:'

# Spellings of Helion / Titanium Carrier Grade, accepted as synonyms.
SYNONYMS = {
    VSWITCH_NUMA_AFFINITY: 'hw:wrs:vswitch_numa_affinity',
    PCI_NUMA_AFFINITY: 'hw:wrs:pci_numa_affinity',
    SHARED_VCPU: 'hw:wrs:shared_vcpu',
    NUMA_NODE: 'hw:numa_node.',
}

# The PCI policy of this project under both spellings.
PCI_KEYS = frozenset([PCI_NUMA_AFFINITY, SYNONYMS[PCI_NUMA_AFFINITY]])

# Nova's own PCI policy: flavor extra spec, image property, and its values.
NATIVE_PCI_KEY = 'hw:pci_numa_affinity_policy'
NATIVE_PCI_PROPERTY = 'hw_pci_numa_affinity_policy'
_NATIVE_PCI = {
    'required': STRICT,
    'socket': SOCKET,
    'preferred': PREFER,
    'legacy': LEGACY,
}

_NUMBER = re.compile(r'[0-9]{1,4}')

# Keys that a message shows without quotes.
_PLAIN_KEY = re.compile(r'[A-Za-z0-9_:.-]{1,40}')

#: Extra specs that tools look at: Nova takes seconds for each hundred.
MOST_SPECS = 256

# Maximum number of unknown keys that a message names.
_NAMED_KEYS = 3


class Fault(ty.NamedTuple):
    key: str  #: the extra spec; empty if it is about several unknown ones
    text: str

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True, slots=True)
class NFVPolicy:
    vswitch: str | None = None  #: ``strict``, ``prefer`` or None
    #: the extra spec that sets it, for messages
    vswitch_key: str = VSWITCH_NUMA_AFFINITY
    #: ``strict``, ``socket``, ``prefer``, ``legacy`` or None
    pci: str | None = None
    #: the extra spec or image property that sets it
    pci_key: str = PCI_NUMA_AFFINITY
    #: index of the vCPU that runs on shared host CPUs, or None
    shared_vcpu: int | None = None
    shared_vcpu_key: str = SHARED_VCPU  #: the extra spec that sets it
    #: (guest NUMA node, host NUMA node) pairs in order of the guest nodes
    node_map: tuple[tuple[int, int], ...] = ()
    node_keys: tuple[str, ...] = ()  #: the extra spec of each pair
    #: the mistakes because of which no host is accepted
    errors: tuple[Fault, ...] = ()


NO_POLICY = NFVPolicy()


def shown(value: ty.Any, most: int = 40) -> str:
    """Return a value in quotes for messages, cut to ``most`` characters."""
    text = repr(value)
    return text if len(text) <= most else text[:most - 3] + '...'


def shown_key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else shown(key)


@functools.cache
def keys() -> frozenset[str]:
    """Return the extra specs that the rules read; see ``Rule.keys``."""
    declared = (getattr(cls, 'keys', ())
                for cls in extensions.classes('nfv_sched.rules'))
    return frozenset().union(
        *(each for each in declared if isinstance(each, tuple)))


def _known_keys() -> dict[str, str]:
    """Return the known keys, up to their first dot -> the key for messages."""
    return {key[:key.find('.') + 1] or key: key for key in keys()}


def nearest_key(key: str) -> str | None:
    """Return the key that a misspelt key ``nfv:...`` is most like, if any."""
    known_keys = _known_keys()
    # difflib takes quadratic time, and keys in files may be of any length.
    if not _is_unknown(key, known_keys) or (
            len(key) > 2 * max(map(len, known_keys))):
        return None
    names = {name.removeprefix(NAMESPACE): name for name in known_keys}
    near = difflib.get_close_matches(
        key.removeprefix(NAMESPACE).lower(), names, n=1)
    return known_keys[names[near[0]]] if near else None


def _is_unknown(key: str, known_keys: Mapping[str, str]) -> bool:
    return key not in known_keys and key[:key.find('.') + 1] not in known_keys


def _check_keys(extra_specs: Mapping, errors: list[Fault]) -> None:
    nfv_keys = [key for key in extra_specs
                if isinstance(key, str) and key.startswith(NAMESPACE)]
    if not nfv_keys:
        return
    known_keys = _known_keys()
    unknown = sorted(key for key in nfv_keys if _is_unknown(key, known_keys))
    for key in unknown[:_NAMED_KEYS]:
        near = nearest_key(key)
        advice = (f'did you mean {near}' if near
                  else 'see the flavor extra specs of nfv-sched')
        errors.append(Fault(key, f'unknown key {shown_key(key)}, {advice}'))
    if len(unknown) > _NAMED_KEYS:
        errors.append(Fault(
            '', f'{len(unknown) - _NAMED_KEYS} more unknown keys'))


def _value_and_spelling(extra_specs: Mapping, key: str, errors: list[Fault]):
    synonym = SYNONYMS[key]
    value, other = extra_specs.get(key), extra_specs.get(synonym)
    if value is None:
        return (other, synonym) if other is not None else (None, key)
    if other is not None and other != value:
        errors.append(Fault(
            key, f'{key}={shown(value)} contradicts {synonym}={shown(other)}'))
    return value, key


def _affinity(extra_specs: Mapping, key: str, errors: list[Fault]):
    value, spelling = _value_and_spelling(extra_specs, key, errors)
    if value is not None and value not in AFFINITIES:
        errors.append(Fault(
            spelling, f'{spelling}={shown(value)} is not one of '
            f'{", ".join(AFFINITIES)}'))
        value = None
    return value, spelling


def _number(value: ty.Any) -> int | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value)
    return None


def _node_map(extra_specs: Mapping, errors: list[Fault]):
    """Return (guest, host) pairs of NUMA nodes, and the key of each."""
    by_guest: dict[int, tuple[int, str]] = {}
    prefixes = (NUMA_NODE, SYNONYMS[NUMA_NODE])
    for key in sorted(k for k in extra_specs if isinstance(k, str)):
        if not key.startswith(prefixes):
            continue
        guest = _number(key.rpartition('.')[2])
        if guest is None or key.count('.') != 1:
            errors.append(Fault(
                key, f'{shown(key)} does not name a guest NUMA node'))
            continue
        value = extra_specs[key]
        if (host := _number(value)) is None:
            errors.append(Fault(
                key, f'{key}={shown(value)} is not the number of a host '
                'NUMA node'))
            continue
        earlier = by_guest.setdefault(guest, (host, key))
        if earlier[0] != host:
            errors.append(Fault(
                key, f'{key}={host} contradicts {earlier[1]}={earlier[0]}'))
    by_host: dict[int, int] = {}
    for guest, (host, key) in sorted(by_guest.items()):
        if host in by_host:
            errors.append(Fault(
                key, f'{key}={host}: guest NUMA node {by_host[host]} is '
                f'mapped to host NUMA node {host} already'))
        by_host.setdefault(host, guest)
    ordered = sorted(by_guest.items())
    return (tuple((guest, host) for guest, (host, _key) in ordered),
            tuple(key for _guest, (_host, key) in ordered))


def _native_pci(extra_specs: Mapping, image_properties: Mapping):
    """Return Nova's PCI policy and its key; Nova refuses unknown values."""
    for source, key in ((extra_specs, NATIVE_PCI_KEY),
                        (image_properties, NATIVE_PCI_PROPERTY)):
        value = source.get(key)
        if isinstance(value, str) and value in _NATIVE_PCI:
            return _NATIVE_PCI[value], key
    return None, NATIVE_PCI_KEY


def parse(extra_specs: Mapping[str, str] | None,
          image_properties: Mapping[str, ty.Any] | None = None) -> NFVPolicy:
    """Parse the placement policies of a flavor and an image; never raise.

    :param image_properties: anything with a ``get`` method
    :returns: with mistakes in ``errors``; :data:`NO_POLICY` if it is empty
    """
    if not isinstance(extra_specs, Mapping):
        extra_specs = {}
    errors: list[Fault] = []
    vswitch, vswitch_key = _affinity(
        extra_specs, VSWITCH_NUMA_AFFINITY, errors)
    pci, pci_key = _affinity(extra_specs, PCI_NUMA_AFFINITY, errors)
    native, native_key = _native_pci(extra_specs, image_properties or {})
    if pci is None:
        if native is not None:
            pci, pci_key = native, native_key
    elif native not in (None, LEGACY, pci):
        errors.append(Fault(
            pci_key, f'{pci_key}={pci} contradicts {native_key}'))

    shared, shared_key = _value_and_spelling(extra_specs, SHARED_VCPU, errors)
    shared_vcpu = _number(shared)
    if shared is not None and shared_vcpu is None:
        errors.append(Fault(
            shared_key, f'{shared_key}={shown(shared)} is not the index of '
            'a vCPU'))

    node_map, node_keys = _node_map(extra_specs, errors)
    _check_keys(extra_specs, errors)
    policy = NFVPolicy(
        vswitch=vswitch, vswitch_key=vswitch_key,
        pci=pci, pci_key=pci_key,
        shared_vcpu=shared_vcpu, shared_vcpu_key=shared_key,
        node_map=node_map, node_keys=node_keys,
        errors=tuple(errors))
    return NO_POLICY if policy == NO_POLICY else policy
