# SPDX-License-Identifier: Apache-2.0
"""Read the ledgers from the answer to Nova's query of allocation candidates.

With the allocation candidates of a request come summaries of all providers in
the trees of the candidate hosts, with capacity and use; the providers of the
ledger are among them.  So the scheduler needs no query of its own, and what it
reads is as new as the request.  Reading only spares Nova claims that would
fail: Placement checks every claim itself.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import threading

from oslo_log import log as logging

from nfv_sched.limits import names

LOG = logging.getLogger(__name__)

_MALFORMED = (ArithmeticError, AttributeError, KeyError, TypeError, ValueError)


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """The provider summaries for the candidate hosts of one request."""

    #: UUID of a provider -> its summary in the answer to ``GET
    #: /allocation_candidates``, since microversion 1.29
    summaries: Mapping[str, Mapping]

    def left(self, compute_node: str, resource_class: str) -> int | None:
        """Return the free ports or rules of a host; None if not known."""
        amounts = self._amounts(compute_node, resource_class)
        return None if amounts is None else amounts[1]

    def figure(self, compute_node: str, resource_class: str) -> int | None:
        """Return the DHCP servers or routers that were published, or None."""
        amounts = self._amounts(compute_node, resource_class)
        return None if amounts is None or amounts[0] is None else (
            names.UNLIMITED - amounts[0])

    def nodes_left(self, compute_node: str,
                   resource_classes: Iterable[str]) -> dict[str, int]:
        """Return what is free of NUMA nodes, without what is not kept."""
        all_amounts = {name: self._amounts(compute_node, name)
                       for name in resource_classes}
        return {name: amounts[1] for name, amounts in all_amounts.items()
                if amounts is not None and amounts[0] is not None}

    def _amounts(self, compute_node: str,
                 resource_class: str) -> tuple[int | None, int] | None:
        """Return capacity, None without an inventory, and what is free.

        :returns: None if the host has no ledger, or its summary is malformed
        """
        summary = self.summaries and self.summaries.get(
            names.provider_uuid(compute_node))
        try:
            # The service gives the trait last: without it the inventory may
            # not be complete, or the host has been taken out of the ledger.
            if not summary or names.TRAIT not in summary['traits']:
                return None
            if not (amounts := summary['resources'].get(resource_class)):
                return None, 0  # nothing can be allocated
            capacity = amounts['capacity']
            return int(capacity), int(capacity - amounts['used'])
        except _MALFORMED:
            if not MALFORMED_LOGGED.is_set():
                MALFORMED_LOGGED.set()
                LOG.error('What Placement says of a ledger is malformed, and '
                          'such hosts are judged as if they had none: %s',
                          summary)
            return None


#: Set once an error has been logged, so that it is logged only once.
MISSING_LOGGED = threading.Event()
MALFORMED_LOGGED = threading.Event()


def log_missing() -> None:
    if not MISSING_LOGGED.is_set():
        MISSING_LOGGED.set()
        LOG.error(
            'Nova does not hand over what Placement says of the candidate '
            'hosts, and limits of ports and rules are not kept. This version '
            'of Nova is not one that nfv-sched is made for, or something else '
            'has replaced the code of its scheduler.')
