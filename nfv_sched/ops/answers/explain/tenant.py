# SPDX-License-Identifier: Apache-2.0
"""Write why a request does not fit for the owner of the server.

As with ``expose_reasons = policy``, nothing is said of hosts: no names, no
numbers, and not which of the causes more hosts have.  Free amounts would tell
what others run.
"""

from collections.abc import Iterator

import os_resource_classes as orc

from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.answers.explain import relaxation
from nfv_sched.ops.model.requests import subject as subjects
from nfv_sched.ops.model.verdicts import values

_NOUNS = {orc.PCPU: 'dedicated CPUs', orc.VCPU: 'vCPUs',
          orc.MEMORY_MB: 'MiB of memory', orc.DISK_GB: 'GiB of disk'}
_CHANGES = 5
_OUT_OF_SERVICE = 'hosts that would do are not in service'
_OTHER = 'a host that the operator of the cloud must look at'


def text(explanation: document.Explained,
         subject: subjects.ExplainSubject) -> list[str]:
    requested = subject.requested
    who = (f'The server {subject.server.name or subject.server.uuid}'
           if subject.server is not None
           else f'A new server of the flavor {requested.flavor.name}')
    if explanation.fits:
        return [f'{who} can be placed now.' if subject.present is None
                else f'{who} runs.']
    lines = [f'{who} cannot be placed now.']
    needs = sorted(set(_needed_texts(explanation)))
    for need in needs:
        lines.append(f'- {need}')
    if needs:
        lines.insert(1, 'No host has what it needs:' if len(needs) == 1
                     else 'No host has all that it needs:')
    changes = list(_changes(explanation, subject))[:_CHANGES]
    if changes:
        lines += ['It could be placed with one of these changes:',
                  *[f'- {change}' for change in changes]]
    return lines


def _needed_texts(explanation: document.Explained) -> Iterator[str]:
    for cause in explanation.causes:
        refusal = cause.refusal
        if cause.kind in ('disabled', 'down', 'unmapped'):
            yield _OUT_OF_SERVICE
        elif cause.kind == 'request' and refusal is not None:
            yield refusal.why or ''
        elif refusal is not None and refusal.need and not refusal.raised:
            yield (f'{refusal.key}: {refusal.need}' if refusal.key
                   else refusal.need)
        elif cause.need is not None and cause.need.kind != 'unknown':
            yield _of_placement(cause.need)
        else:
            yield _OTHER


def _of_placement(need: values.PlacementNeed) -> str:
    """Return a requirement of Placement; aggregates are the operator's."""
    words = [f'{amount} {_NOUNS.get(name, name)}'
             for name, amount in need.resources.items()]
    trait = 'not the trait' if need.kind == 'forbidden_trait' else 'the trait'
    words += [f'{trait} {name}' for name in need.traits]
    words += [f'not the trait {name}' for name in need.forbidden_traits]
    return f'{" and ".join(words)} needed' if words else (
        'a host in the zone, or for the project, of the server needed')


def _changes(explanation: document.Explained,
             subject: subjects.ExplainSubject) -> Iterator[str]:
    present = subject.requested.flavor
    for change in explanation.changes:
        flavor = change.requested.flavor
        # A smaller size, or number of devices, that fits would tell the tenant
        # how much is free on a host.
        if not change.hosts_enabled and (flavor.vcpus, flavor.memory) == (
                present.vcpus, present.memory) and flavor.extra_specs.get(
                    relaxation.ALIAS) in (
                        None, present.extra_specs.get(relaxation.ALIAS)):
            yield change.text
