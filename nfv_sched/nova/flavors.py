# SPDX-License-Identifier: Apache-2.0
"""Check flavors and images as Nova's API does, without an API.

The validators of extra specs are those that ``nova-api`` would load here,
those of other packages included; the checks of a flavor as a whole are those
that the API makes when a server is created.
"""

from collections.abc import Mapping
import dataclasses
import functools
import math
import re
import typing as ty

import nova.conf
from nova import exception
from nova import objects

from nfv_sched.base import extra_specs as nfv_extra_specs

CONF = nova.conf.CONF

# Makes the classes attributes of nova.objects.
objects.register_all()

#: Highest number of a vCPU that is accepted; Nova makes a set of all numbers
#: in a value such as 0-4000000000.
MOST_VCPUS = 1 << 16
#: Maximum length of the value of an extra spec in the API.
MOST_VALUE = 255
#: Linux does not support hosts with more NUMA nodes.
MOST_NODES = 1 << 10

# Names of Nova's checks of flavor and image: those of the API in its order, of
# the scheduler and of the libvirt driver. Some are not in each release.
_CHECKS = (
    'get_packed_virtqueue_constraint', 'get_mem_encryption_constraint',
    'get_pmu_constraint', 'get_number_of_serial_ports',
    'get_realtime_cpu_constraint', 'get_cpu_topology_constraints',
    'get_vif_multiqueue_constraint', 'numa_get_constraints',
    'get_pci_numa_policy_constraint', 'get_vtpm_constraint',
    'get_secure_boot_constraint', 'get_maxphysaddr_mode',
    'get_ephemeral_encryption_constraint', 'get_ephemeral_encryption_format',
    'get_sound_model', 'get_usb_model', 'get_redirected_usb_ports')

_PLACEHOLDER = re.compile(r'\{[^}]*\}')


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """An extra spec that the API knows."""

    name: str  #: its key; ``{...}`` stands for a variable part
    #: allowed values: ``type``, and ``enum``, ``pattern``, ``min`` or ``max``
    value: Mapping[str, ty.Any]
    pattern: re.Pattern

    def is_of(self, key: str) -> bool:
        return self.name == key or self.pattern.fullmatch(key) is not None

    @property
    def stem(self) -> str:
        return _PLACEHOLDER.sub('', self.name)


@functools.cache
def specs() -> tuple[Spec, ...]:
    """Return the extra specs that the API knows; may raise any error."""
    from nova.api.validation.extra_specs import validators
    return tuple([
        Spec(each.name, each.value, re.compile(each.name_regex))
        for each in validators.VALIDATORS.values()])


@functools.lru_cache(maxsize=4096)
def refusal(key: str, value: str) -> str | None:
    """Return why the API, since 2.86, refuses an extra spec; None if not."""
    from nova.api.validation.extra_specs import validators
    if (reason := malformed_cpus(key, value)) is not None:
        return reason
    try:
        validators.validate(key, value)
    except exception.NovaException as exc:
        return exc.format_message()
    except Exception as exc:  # in a validator of another package
        return f'{type(exc).__name__}: {exc}'
    return None


def misshapen(key: str, value: str) -> str | None:
    """Return why no microversion of the API takes an extra spec, or None."""
    from nova.api.validation import parameter_types
    (pattern, form), = parameter_types.metadata['patternProperties'].items()
    if not re.fullmatch(pattern, key):
        return f'the API takes only keys of the form {pattern}'
    if len(value) > form['maxLength']:
        return (f'the API takes no value of more than {form["maxLength"]} '
                f'characters, this one has {len(value)}')
    return None


# Keys of flavors and image properties whose values Nova reads as sets of CPUs;
# it does not limit the number of CPUs, not even in the API.
_CPU_SETS = re.compile(r'hw[:_](numa_cpus\.\d+|cpu_dedicated_mask|'
                       r'cpu_realtime_mask)')
_CPU_SET = re.compile(r'\^?\d+(-\d+)?(,\^?\d+(-\d+)?)*')
# Length up to which Nova's pattern refuses a set of CPUs in milliseconds.
_SHORT = 32
_NODES = ('hw:numa_nodes', 'hw_numa_nodes')
_PAGE_SIZES = ('hw:mem_page_size', 'hw_mem_page_size')
# Characters of a page size; float() makes more than 308 digits infinite.
_MOST_SIZE = 32


def malformed_cpus(key: str, value: str) -> str | None:
    """Return why a long value of a key for CPUs is malformed, or None."""
    # NOTE: The pattern of Nova's validator has nested repetitions (still so in
    # Nova 34): it takes minutes to refuse a value of 16 spans with a mistake
    # at its end.
    if (_CPU_SETS.fullmatch(key) and len(value) > _SHORT
            and not _CPU_SET.fullmatch(value)):
        return 'not a set of CPUs such as 0-3,^2,8'
    return None


def unreadable(extra_specs: Mapping[str, ty.Any]) -> str | None:
    """Return why extra specs would take minutes or fill memory; else None."""
    if len(extra_specs) > nfv_extra_specs.MOST_SPECS:
        return (f'{len(extra_specs)} extra specs are more than '
                f'{nfv_extra_specs.MOST_SPECS}, which nfv-sched does not '
                'look at')
    for key, value in extra_specs.items():
        if len(str(value)) > MOST_VALUE or len(str(key)) > MOST_VALUE:
            return (f'{key[:40]} has more than {MOST_VALUE} characters, which '
                    'no API takes')
        if (reason := oversized(key, value)) is not None:
            return reason
    return None


def oversized(key: str, value: ty.Any) -> str | None:
    """Return why a spec or property takes too much memory or time, or None."""
    text = str(value)
    if _CPU_SETS.fullmatch(key) and cpu_count(text) > MOST_VCPUS:
        return f'{key} has more than {MOST_VCPUS} CPUs, which no server has'
    if key in _NODES and text.isdecimal() and (
            len(text) > 9 or int(text) > MOST_NODES):
        return f'{key} is more than {MOST_NODES}, which no host has'
    if key in _PAGE_SIZES and len(text) > _MOST_SIZE:
        return f'{key} is longer than any page size'
    return None


def cpu_count(text: str) -> int:
    """Return how many numbers Nova would read from a set of CPUs.

    Counted as Nova reads it: ``int()`` takes signs, underscores and the digits
    of any script, spans may overlap, and the parts before a mistake are read.
    A number that no vCPU has counts as too many.
    """
    count = 0
    for part in text.split(','):
        first, _dash, last = part.strip().lstrip('^').partition('-')
        try:
            start = int(first)
            end = int(last) if last else start
        except ValueError:
            continue
        count += max(0, end - start) + 1
        if end >= MOST_VCPUS or count > MOST_VCPUS:
            return MOST_VCPUS + 1
    return count


class ImageError(ValueError):
    """Nova refuses the value of an image property."""


def image(properties: Mapping[str, str]) -> objects.ImageMeta:
    """Return an image of Nova; raise ImageError if Nova refuses a value."""
    for name, value in properties.items():
        if (reason := oversized(name, value)) is not None:
            raise ImageError(reason)
    try:
        return objects.ImageMeta.from_dict({
            # Some of Nova's messages have the name.
            'name': 'image', 'status': 'active',
            'properties': dict(properties)})
    except (exception.NovaException, ValueError, TypeError) as exc:
        raise ImageError(str(exc)) from exc


def reads_property(name: str, value: str) -> bool:
    """Return whether Nova reads an image property, instead of dropping it.

    For ``hw_numa_cpus.N`` and ``hw_numa_mem.N`` it is not checked whether
    those of lower numbers exist.
    """
    if re.fullmatch(r'hw_numa_(?:cpus|mem)\.[0-9]+', name):
        return True
    try:
        properties = objects.ImageMetaProps.from_dict({name: value})
    except Exception:  # it is read, and cannot be
        return True
    return any(properties.obj_attr_is_set(field)
               for field in properties.fields)


class FlavorRefusal(ty.NamedTuple):
    kind: str  #: name of the exception
    text: str  #: its message
    #: extra specs, then image properties; without any one of them the reason
    #: would not apply; empty if that was not tried
    keys: tuple[str, ...] = ()


def refusals(flavor: objects.Flavor,
             meta: objects.ImageMeta) -> list[FlavorRefusal]:
    from nova.virt import hardware
    reasons = []
    # Each of Nova's checks is made, so that all mistakes are found at once.
    for check in (*(getattr(hardware, name) for name in _CHECKS
                    if hasattr(hardware, name)), _check_limits):
        try:
            check(flavor, meta)
        except exception.NovaException as exc:
            reasons.append(FlavorRefusal(
                type(exc).__name__, exc.format_message()))
        except Exception as exc:  # the API would answer 400 or 500
            reasons.append(FlavorRefusal(type(exc).__name__, str(exc)))
    return list(dict.fromkeys(reasons))


def _check_limits(flavor: objects.Flavor, meta: objects.ImageMeta) -> None:
    """Refuse limits of sockets, cores and threads that no topology meets.

    The API does not check them; the compute host does, when the server is
    started: at each product of three numbers, which would take minutes for
    hundreds of vCPUs.  Here only divisors are tried.

    :raises nova.exception.ImageVCPULimitsRangeImpossible: as the host does
    """
    from nova.virt import hardware
    try:
        _preferred, most = hardware.get_cpu_topology_constraints(flavor, meta)
    except Exception:  # reported by its own check
        return
    for sockets in divisors(flavor.vcpus, most.sockets):
        for cores in divisors(flavor.vcpus // sockets, most.cores):
            if flavor.vcpus // sockets // cores <= most.threads:
                return
    raise exception.ImageVCPULimitsRangeImpossible(
        vcpus=flavor.vcpus, **{
            part: min(flavor.vcpus, getattr(most, part))
            for part in ('sockets', 'cores', 'threads')})


def divisors(number: int, most: int) -> list[int]:
    lower = [each for each in range(1, math.isqrt(number) + 1)
             if number % each == 0]
    return [each for each in sorted({*lower, *(
        number // each for each in lower)}) if each <= most]


def numa_topology(flavor: objects.Flavor, meta: objects.ImageMeta) -> ty.Any:
    """Return an ``InstanceNUMATopology``; None if none, or Nova refuses."""
    from nova.virt import hardware
    try:
        return hardware.numa_get_constraints(flavor, meta)
    except Exception:  # reported by refusals()
        return None


def request(flavor: objects.Flavor, meta: objects.ImageMeta,
            topology: ty.Any) -> objects.RequestSpec:
    """Return a request for a server without networks and PCI devices."""
    return objects.RequestSpec(
        flavor=flavor, image=meta, numa_topology=topology, num_instances=1,
        pci_requests=objects.InstancePCIRequests(requests=[]))


def placement_requests(context: ty.Any, spec: objects.RequestSpec,
                       manager: ty.Any) -> list:
    """Return the queries that nova-scheduler sends to Placement.

    :param manager: its ``HostManager``; None if the request names no host
    :returns: ``ResourceRequest``: the query, and for pinned servers the
        fallback with VCPU in place of PCPU, unless ``[workarounds]
        disable_fallback_pcpu_query`` is set
    """
    from nova.scheduler import utils
    requests = [utils.resources_from_request_spec(
        context, spec, manager, enable_pinning_translate=True)]
    if requests[0].cpu_pinning_requested and not (
            CONF.workarounds.disable_fallback_pcpu_query):
        requests.append(utils.resources_from_request_spec(
            context, spec, manager, enable_pinning_translate=False))
    return requests
