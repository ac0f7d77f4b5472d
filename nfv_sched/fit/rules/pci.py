# SPDX-License-Identifier: Apache-2.0
"""Keep guests on the NUMA nodes of their PCI devices."""

from nfv_sched.base import extra_specs
from nfv_sched.base import reasons
from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import rule
from nfv_sched.fit.numa import shortage

_REQUIRED = 'hw:pci_numa_affinity_policy=required'


class PCIRule(rule.Rule):
    """``nfv:pci_numa_affinity``: every PCI device on a NUMA node of the guest.

    Nova's own policies ``required``, ``socket`` and ``legacy`` need no rule.
    ``preferred`` makes a preferred rule, which adds no labels unless the
    request also has a key of nfv-sched.
    """

    name = 'pci'
    filters = ('PCINUMAAffinityFilter',)
    order = 30
    keys = (extra_specs.PCI_NUMA_AFFINITY,)
    weighed = True
    devices = True

    @classmethod
    def from_request(cls, request_parts):
        policy, degree, ours = request_parts.policy, None, False
        if policy.pci_key in extra_specs.PCI_KEYS and policy.pci is not None:
            degree, ours = policy.pci, True
        # Also by numa_policy of the alias, or by the image.
        elif any(demand.policy == pci.PREFERRED
                 for demand in request_parts.demands):
            degree = extra_specs.PREFER
        if degree is None or not request_parts.demands:
            return ()
        text = (f'{policy.pci_key}={policy.pci}' if policy.pci
                else f'{extra_specs.NATIVE_PCI_KEY}={pci.PREFERRED}')
        return (cls(text, degree == extra_specs.STRICT, ours),)

    def missing_reason(self, facts, guest_on_host):
        # numa_fit_instance_to_host ignores PCI requests without pci_stats, and
        # PciPassthroughFilter need not be enabled.
        if guest_on_host.devices is None:
            return reasons.Reason(
                self.order, self.text, 'PCI devices needed',
                'the host has none')
        return None

    def applies(self, facts, guest_on_host):
        return guest_on_host.devices is not None

    def condition(self, facts, guest_on_host):
        return guest_on_host.devices.local

    def violation_reason(self, facts, guest_on_host, pinning):
        if self.is_satisfied(facts, guest_on_host, pinning.chosen):
            return None
        served = guest_on_host.devices.serve(
            candidates.mask_of(pinning.chosen))
        local = 0 if served is None else served.local
        return reasons.Reason(
            self.order, self.text, 'all PCI devices on its NUMA nodes needed',
            f'{local} of {guest_on_host.devices.requested} are')

    def is_always_satisfied(self, facts, guest_on_host, groups):
        # The claim follows the NUMA policy of each PCI request, and takes
        # devices of the resource providers that Placement has allocated. For
        # moves it has the policy of the alias, except for unshelving, which
        # the scheduler cannot distinguish from a cold migration: both policies
        # must be enough.
        if (guest_on_host.devices is None
                or len(guest_on_host.evaluation.host.cells) == 1):
            return True
        return all(
            _stays_local(guest_on_host, number, policy, groups)
            for number, demand in enumerate(
                guest_on_host.devices.devices.wanted)
            for policy in {demand.claimed, demand.policy})

    def degree(self, facts, guest_on_host, chosen):
        if guest_on_host.devices is None:
            return 0.0
        served = guest_on_host.devices.serve(candidates.mask_of(chosen))
        return served.local / served.total if served and served.total else 0.0

    def partial_labels(self, facts, guest_on_host, must):
        return guest_on_host.label_sets(must)

    def capacity_reason(self, facts, guest_on_host, before):
        # Devices far from the request's networks would not help.
        masks = shortage.near(before.masks, guest_on_host.groups)
        reason = shortage.devices_reason(
            guest_on_host.evaluation, guest_on_host.devices, masks, self.text,
            self.order, before.places, local=True)
        return reason or reasons.Reason(
            self.order, self.text,
            f'needs NUMA nodes{reasons.where(before.places)} with all the PCI '
            'devices and CPUs', 'none')

    def claim_reason(self, facts, guest_on_host, before):
        devices = guest_on_host.devices.devices
        if any(map(devices.has_unknown, range(len(devices.wanted)))):
            return reasons.Reason(
                reasons.ENFORCEMENT, self.text,
                f'devices with NUMA information needed, or {_REQUIRED}',
                'some have none')
        if any(demand.claimed is None for demand in devices.wanted):
            return reasons.Reason(
                reasons.ENFORCEMENT, self.text,
                "the [pci] aliases in the scheduler's configuration needed "
                'for a move', 'it has none', own=True)
        if not any(demand.fixable or demand.from_port or
                   demand.claimed == pci.REQUIRED
                   for demand in devices.wanted):
            return reasons.Reason(
                reasons.ENFORCEMENT, self.text,
                'aliases with numa_policy required needed for a move',
                'the claim could take other devices', own=True)
        return reasons.Reason(
            reasons.ENFORCEMENT, self.text, f'{_REQUIRED} needed',
            'the claim could take other devices', own=True)

    def floating(self, host, names):
        if host is not None and len(host.cells) == 1:
            return 1.0
        if not self.strict:
            return 0.0
        return self.needs_topology()


def _stays_local(guest_on_host: rule.GuestOnHost, number: int,
                 policy: str | None, groups) -> bool:
    """Return whether a claim takes all devices from its host cells.

    :param policy: NUMA policy that the claim follows; None if not known
    """
    devices = guest_on_host.devices.devices
    if (fixed := guest_on_host.devices.fixed(number)) is not None:
        if policy in (pci.REQUIRED, pci.LEGACY) and fixed.bit_count() == 1:
            return True
        # Of several providers Nova may leave some out.
        return guest_on_host.always_on(groups, fixed)
    if policy == pci.REQUIRED:
        return True
    if policy == pci.SOCKET and all(
            devices.same_socket(1 << index) == 1 << index
            for index in range(len(guest_on_host.evaluation.host.cells))):
        return True
    # Only devices without NUMA information may be remote with "legacy".
    return policy == pci.LEGACY and not devices.has_unknown(number)
