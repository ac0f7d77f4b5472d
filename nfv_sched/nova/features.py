# SPDX-License-Identifier: Apache-2.0
"""Know which features work with the installed Nova.

Each supported release has what they use: tests hold that, and
``nfv-sched-status upgrade check`` looks at the installed one.  A release that
is not known is looked at when the first filter is made, as a filter would
otherwise find out in the middle of a request.
"""

from collections.abc import Sequence
import enum
import functools
import importlib.metadata
import typing as ty

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: Supported releases of Nova, by their first number.
RELEASES = (29, 31, 32, 33, 34)


class Feature(enum.Enum):
    """A part of nfv-sched; the value is what operators read."""

    FILTERS = 'filters'
    EXTRA_SPECS = 'extra specs of flavors'
    POLICIES = 'placement policies'
    PREDICTION = 'prediction of the claim'
    LIVE_MIGRATION = 'live migrations of servers with a strict policy'
    ALIASES = 'NUMA policies of PCI aliases'
    LIMITS = 'limits of ports and security group rules'
    WEIGHERS = 'weighers'
    REASONS = 'reasons that tenants see'
    JOURNAL = 'refusals by Placement and other filters in the journal'
    LEDGER = 'the ledger in Placement'


class MissingInterface(ty.NamedTuple):
    what: str  #: name with its module, and of a parameter or field
    features: tuple[Feature, ...]  #: what does not work without it


@functools.cache
def release() -> int:
    """Return Nova's first version number, or that of the newest supported."""
    try:
        number = int(importlib.metadata.version('nova').partition('.')[0])
    except (importlib.metadata.PackageNotFoundError, ValueError):
        number = 0
    return number if number >= RELEASES[0] else RELEASES[-1]


#: What Nova lacks; filled before nova-scheduler starts its workers.
LACKING: set[Feature] = set()


def note_missing(missing: Sequence[MissingInterface]) -> None:
    """Count the features that cannot work; log once what is missing."""
    features = {feature for item in missing for feature in item.features}
    if not features <= LACKING:
        LACKING.update(features)
        LOG.error('%s', text(missing))


def is_broken(feature: Feature) -> bool:
    """Return whether a feature, or what all need, cannot work."""
    return not LACKING.isdisjoint(
        (feature, Feature.FILTERS, Feature.EXTRA_SPECS))


def hides_extra_specs() -> bool:
    """Return whether extra specs cannot be read: each may be a policy."""
    return Feature.EXTRA_SPECS in LACKING


def text(lacking: Sequence[MissingInterface]) -> str:
    parts = []
    for feature in Feature:
        names = [item.what for item in lacking if feature in item.features]
        if names:
            parts.append(f'{feature.value}: {"; ".join(names)}')
    return ('The installed Nova or its libraries lack what nfv-sched uses. '
            f'Affected: {". ".join(parts)}. Hosts are refused for requests '
            'with a policy or limit that cannot be kept. Install a release '
            'of nfv-sched for this Nova')
