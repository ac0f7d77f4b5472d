# SPDX-License-Identifier: Apache-2.0

"""Read a cloud file into values of :mod:`.model`.

Anything wrong with a file is reported as an
:class:`~nfv_sched.ops.cloud.problems.InputError` with file, line
and field: invalid YAML, duplicate keys, unknown keys, wrong types, names of
missing objects, contradictory dimensions of hosts.  Extra specs of flavors
are checked by a function that is passed in, so that this module does not
need Nova.
"""

from collections.abc import Callable, Collection, Mapping
import dataclasses
import typing as ty

from nfv_sched.base import extra_specs
from nfv_sched.ops.cloud.cloud_file import compile as compiler
from nfv_sched.ops.cloud.cloud_file import hosts as cloud_hosts
from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.ops.cloud.cloud_file import steps as cloud_steps
from nfv_sched.ops.cloud.cloud_file import text as cloud_text
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot


class _Loader:
    """A loader of one parsed file; for the parameters see :func:`loads`."""

    def __init__(self, errors: problems.Problems, defaults: scenarios.Defaults,
                 check_extra_spec: Callable[[str, str], str | None]):
        self._errors = errors
        self._defaults = defaults
        self._check_extra_spec = check_extra_spec
        self._patterns = cloud_steps.Patterns(errors)

    def load(self, data) -> scenarios.Scenario:
        errors = self._errors
        cloud = self._read(model.CloudFile, data)
        if cloud.pci_aliases is not None and (
                'alias' in cloud.options.get('pci', {})):
            errors.add(('options', 'pci', 'alias'),
                       'cannot be combined with pci_aliases')
        groups = cloud_hosts.HostCompiler(cloud, errors,
                                          self._defaults).groups()
        # If a host is missing, references to it would look wrong.
        errors.stop_if_wrong()
        names = dict.fromkeys(name for group in groups
                              for name in group.names)
        cloud = dataclasses.replace(
            cloud, groups=groups, aggregates=tuple(
                self._aggregate(i, aggregate, names)
                for i, aggregate in enumerate(cloud.aggregates)))
        return self._with_steps(
            compiler.scenario(cloud, errors.path, self._defaults), cloud)

    def load_steps(self, data, cloud: snapshot.Cloud) -> scenarios.Scenario:
        """Read a file of steps for a cloud from a snapshot."""
        if isinstance(data, Mapping) and 'hosts' in data:
            self._errors.add(('hosts',), 'the hosts are those of --from; a '
                                         'file of steps for it has none')
            self._errors.stop_if_wrong()
        more = self._read(model.WhatIf, data)
        return self._with_steps(
            compiler.with_additions(scenarios.of_snapshot(cloud), more), more)

    def _read(self, kind: type, data) -> ty.Any:
        if data is None:
            raise problems.InputError(
                [f'{self._errors.path}: the file is empty'])
        contents = codec.decode_file(kind, data, self._errors)
        self._errors.stop_if_wrong()
        return contents

    def _with_steps(self, start: scenarios.Scenario,
                    contents: model.WhatIf) -> scenarios.Scenario:
        self._check_flavors(contents)
        self._check_server_groups(contents)
        self._check_networks(contents)
        reader = cloud_steps.Steps(start, self._errors)
        steps = []
        for number, step in enumerate(contents.steps, 1):
            steps.append(reader.read(number, step))
            if self._errors.are_many:
                break
        self._errors.stop_if_wrong()
        return dataclasses.replace(
            start, path=self._errors.path, steps=tuple(steps), lines={
                (group, name): self._errors.line(('options', group, name))
                for group, options in contents.options.items()
                for name in options})

    def _check_flavors(self, cloud: model.WhatIf) -> None:
        for flavor in cloud.flavors.values():
            if not flavor.validate:
                continue
            if len(flavor.extra_specs) > extra_specs.MOST_SPECS:
                self._errors.add(
                    ('flavors', flavor.name, 'extra_specs'),
                    f'{len(flavor.extra_specs)} extra specs are more than '
                    f'{extra_specs.MOST_SPECS}')
                continue
            for key, value in flavor.extra_specs.items():
                complaint = self._check_extra_spec(key, value)
                if complaint:
                    self._errors.add(
                        ('flavors', flavor.name, 'extra_specs', key),
                        f'the Nova API refuses this: {complaint}')

    def _check_server_groups(self, cloud: model.WhatIf) -> None:
        for group in cloud.server_groups.values():
            if (group.max_server_per_host is not None and
                    group.policy != 'anti-affinity'):
                self._errors.add(
                    ('server_groups', group.name, 'max_server_per_host'),
                    'is for the policy anti-affinity')

    def _check_networks(self, cloud: model.WhatIf) -> None:
        for network in cloud.networks.values():
            path = ('networks', network.name)
            physical = network.physical_network is not None
            if network.tunneled not in (None, not physical):
                self._errors.add(path, 'must have a physical_network or be '
                                       'tunneled, one of the two')
            for key in ('numa_policy', 'trusted'):
                if network.vnic_type == 'normal' and (
                        getattr(network, key) is not None):
                    self._errors.add((*path, key), 'is for other vnic_types '
                                                   'than normal')
            if network.vnic_type != 'normal' and not (
                    physical or network.tunneled):
                self._errors.add((*path, 'vnic_type'),
                                 'needs a physical_network, or tunneled: true')

    def _aggregate(self, number: int, aggregate: model.AggregateEntry,
                   hosts: Collection[str]) -> model.AggregateEntry:
        members: dict[str, None] = {}
        for pattern in aggregate.hosts:
            matches = self._patterns.matching(
                ('aggregates', number, 'hosts'), pattern, hosts)
            if not matches:
                self._errors.known(('aggregates', number, 'hosts'), 'host',
                                   pattern, hosts)
            members.update(dict.fromkeys(matches))
        return dataclasses.replace(aggregate, hosts=tuple(members))


def _accept(name: str, value: str) -> str | None:
    return None


def loads(text: str, path: str = '<text>',
          defaults: scenarios.Defaults = scenarios.DEFAULTS,
          check_extra_spec: Callable[[str, str], str | None] = _accept,
          ) -> scenarios.Scenario:
    """Read a cloud and its steps from YAML text.

    :param path: name of the file for messages
    :param check_extra_spec: takes name and value of an extra spec, returns
        what is wrong with it, or None
    :raises InputError: if anything is wrong with the text
    """
    data, marks = cloud_text.parse(text, path)
    return _Loader(problems.Problems(path, marks), defaults,
                   check_extra_spec).load(data)


def loads_steps(text: str, path: str, cloud: snapshot.Cloud,
                check_extra_spec: Callable[[str, str], str | None] = _accept,
                ) -> scenarios.Scenario:
    """Read additions to a snapshot, and steps for it; see :func:`loads`."""
    data, marks = cloud_text.parse(text, path)
    return _Loader(problems.Problems(path, marks), scenarios.DEFAULTS,
                   check_extra_spec).load_steps(data, cloud)


def load(path: str, defaults: scenarios.Defaults = scenarios.DEFAULTS,
         check_extra_spec: Callable[[str, str], str | None] = _accept,
         ) -> scenarios.Scenario:
    """Read a cloud and its steps from a YAML file; see :func:`loads`."""
    return loads(cloud_text.read(path), path, defaults, check_extra_spec)
