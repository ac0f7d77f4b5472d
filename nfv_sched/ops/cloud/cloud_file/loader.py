# SPDX-License-Identifier: Apache-2.0
"""Read a cloud file, with its steps, into a scenario.

Anything wrong with a file is reported as an
:class:`~nfv_sched.ops.cloud.problems.InputError` with file, line
and field.
"""

from collections.abc import Callable, Collection, Mapping
import dataclasses
import difflib
import fnmatch
import functools
import re
import typing as ty

from nfv_sched.base import extra_specs
from nfv_sched.base import files
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud.cloud_file import compile as compiler
from nfv_sched.ops.cloud.cloud_file import hosts as cloud_hosts
from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.ops.cloud.cloud_file import text as cloud_text
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import marks
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import values

# Items of files.max_items() that a server counts for.
_ITEMS_PER_SERVER = 8
# Most servers that a message names.
_SHOWN = 5
_GLOB = re.compile(r'[*?\[]')


def loads(text: str, path: str = '<text>',
          defaults: scenarios.Defaults = scenarios.DEFAULTS,
          ) -> scenarios.Scenario:
    """Read a cloud and its steps from YAML text; ``path`` is its name."""
    cloud, errors = _contents(model.CloudFile, text, path)
    if cloud.pci_aliases is not None and (
            'alias' in cloud.options.get('pci', {})):
        errors.add(('options', 'pci', 'alias'),
                   'cannot be combined with pci_aliases')
    groups = cloud_hosts.HostCompiler(cloud, errors, defaults).groups()
    # If a host is missing, references to it would look wrong.
    errors.stop_if_wrong()
    names = dict.fromkeys(name for group in groups for name in group.names)
    patterns = _Patterns(errors)
    cloud = dataclasses.replace(
        cloud, hosts=groups, aggregates=tuple([
            dataclasses.replace(aggregate, hosts=tuple(patterns.matching(
                ('aggregates', i, 'hosts'), 'host', aggregate.hosts, names)))
            for i, aggregate in enumerate(cloud.aggregates)]))
    return _with_steps(compiler.scenario(cloud, path, defaults), cloud, errors)


def loads_steps(text: str, path: str,
                cloud: snapshot.Cloud) -> scenarios.Scenario:
    """Read additions to a snapshot, and steps for it; see :func:`loads`."""
    more, errors = _contents(model.WhatIf, text, path)
    return _with_steps(
        compiler.with_additions(scenarios.of_snapshot(cloud), more), more,
        errors)


def load(path: str, defaults: scenarios.Defaults = scenarios.DEFAULTS,
         ) -> scenarios.Scenario:
    return loads(cloud_text.read(path), path, defaults)


def _contents(kind: type, text: str,
              path: str) -> tuple[ty.Any, problems.Problems]:
    data, lines = cloud_text.parse(text, path)
    errors = problems.Problems(path, lines)
    if data is None:
        raise problems.InputError([f'{path}: the file is empty'])
    if kind is model.WhatIf and isinstance(data, Mapping) and 'hosts' in data:
        errors.add(('hosts',), 'the hosts are those of --from; a file of '
                               'steps for it has none')
        errors.stop_if_wrong()
    contents = codec.decode_file(kind, data, errors)
    errors.stop_if_wrong()
    return contents, errors


def _with_steps(start: scenarios.Scenario, contents: model.WhatIf,
                errors: problems.Problems) -> scenarios.Scenario:
    _check_flavors(contents, errors)
    for name, group in contents.server_groups.items():
        if (group.max_server_per_host is not None and
                group.policy != 'anti-affinity'):
            errors.add(('server_groups', name, 'max_server_per_host'),
                       'is for the policy anti-affinity')
    for name, network in contents.networks.items():
        _check_network(('networks', name), network, errors)
    reader = _Steps(start, errors)
    steps = []
    for number, step in enumerate(contents.steps, 1):
        steps.append(reader.read(number, step))
        if errors.are_many:
            break
    errors.stop_if_wrong()
    return dataclasses.replace(
        start, path=errors.path, steps=tuple(steps), lines={
            (group, name): errors.line(('options', group, name))
            for group, options in contents.options.items()
            for name in options})


def _check_flavors(contents: model.WhatIf, errors: problems.Problems) -> None:
    from nfv_sched.nova import flavors  # imports Nova, which takes seconds
    for name, flavor in contents.flavors.items():
        if not flavor.validate:
            continue
        path = ('flavors', name, 'extra_specs')
        if len(flavor.extra_specs) > extra_specs.MOST_SPECS:
            errors.add(path, f'{len(flavor.extra_specs)} extra specs are more '
                             f'than {extra_specs.MOST_SPECS}')
            continue
        for key, value in flavor.extra_specs.items():
            if complaint := flavors.refusal(key, value):
                errors.add((*path, key),
                           f'the Nova API refuses this: {complaint}')


def _check_network(path: problems.Path, network: model.NetworkEntry,
                   errors: problems.Problems) -> None:
    physical = network.physical_network is not None
    if network.tunneled not in (None, not physical):
        errors.add(path, 'must have a physical_network or be tunneled, one of '
                         'the two')
    if network.vnic_type == 'normal':
        for key in ('numa_policy', 'trusted'):
            if getattr(network, key) is not None:
                errors.add((*path, key), 'is for other vnic_types than normal')
    elif not (physical or network.tunneled):
        errors.add((*path, 'vnic_type'),
                   'needs a physical_network, or tunneled: true')


class _Patterns:
    """A comparison of names with patterns, a limited number of them."""

    def __init__(self, errors: problems.Problems):
        self._errors = errors
        self._compared = 0

    def matching(
        self, path: problems.Path, kind: str, patterns: Collection[str],
        names: Collection[str],
        meant_by: Callable[[str], list[str]] = lambda pattern: [],
    ) -> dict[str, None]:
        """Return the names that match patterns with ``*``, ``?`` or ``[``.

        A pattern that is itself a name matches only that one.  Each must match
        something.

        :param meant_by: returns what a pattern means that matches no name
        :raises InputError: if too many names were compared
        """
        matched: dict[str, None] = {}
        for pattern in patterns:
            matches = [pattern] if pattern in names else []
            if not matches and _GLOB.search(pattern):
                self._compared += len(names)
                if self._compared > files.max_items():
                    self._errors.add(path, str(files.beyond(
                        f'{files.max_items()} names to compare with '
                        'patterns')))
                    self._errors.stop_if_wrong()
                matches = [name for name in names
                           if fnmatch.fnmatchcase(name, pattern)]
            if not (matches := matches or meant_by(pattern)):
                self._errors.known(path, kind, pattern, names)
            matched.update(dict.fromkeys(matches))
        return matched


class _Steps:
    """A reader of steps, one after the other, for a cloud without steps."""

    def __init__(self, start: scenarios.Scenario, errors: problems.Problems):
        self._errors = errors
        self._patterns = _Patterns(errors)
        self._booted_count = 0
        self._networks = start.networks
        # Steps cannot use an ambiguous name.
        self._meant = scenarios.server_names(start.cloud)
        # Names of the servers that exist at the step.
        self._servers: dict[str, None] = dict.fromkeys(
            name for names in self._meant.values() for name in names)
        self._known: Mapping[str, Collection[str]] = {
            'flavor': {flavor.name for flavor in start.cloud.flavors},
            'image': start.images, 'network': start.networks,
            'security group': start.security_groups,
            'server group': start.server_groups,
            'host': dict.fromkeys(
                host.name for host in scenarios.hosts_of(start.cloud)),
            'place': set().union(*start.places.values())}

    def read(self, number: int, data: Mapping) -> actions.Step | None:
        """Read a step; None if it has problems that prevent it."""
        path: problems.Path = ('steps', number - 1)
        if (action := self._action(path, data)) is None:
            return None
        kind = actions.TYPES[action]
        names: tuple[str, ...] | None = ()
        # The values of these two are no lists of names.
        if action not in ('boot', 'neutron'):
            names = codec.decode_file(
                values.Names, data[action], self._errors, (*path, action))
            data = {key: value for key, value in data.items() if key != action}
        step = codec.decode_file(kind, data, self._errors, path)
        if step is None or names is None:
            return None
        if (expected := step.expect) is not None:
            line = self._errors.line
            expected = dataclasses.replace(
                expected, line=line((*path, 'expect')), servers={
                    name: dataclasses.replace(each, line=line(
                        (*path, 'expect', 'servers', name)))
                    for name, each in expected.servers.items()})
        step = dataclasses.replace(
            step, action=action, number=number, line=self._errors.line(path),
            targets=self._name_booted((*path, action), step)
            if action == 'boot'
            else self._targets((*path, action), action, names),
            expect=expected)
        names_by_kind = {**self._known, 'server in this step': step.targets}
        for name_path, mark, name in marks.find(
                kind, step, values.NameOf, path):
            self._errors.known(
                name_path, mark.kind, name, names_by_kind[mark.kind])
        self._check(path, step)
        if expected is not None:
            path = (*path, 'expect')
            self._check_expectation(path, expected, step.targets)
            for name, each in expected.servers.items():
                self._check_expectation(
                    (*path, 'servers', name), each, (name,))
        return step

    def _action(self, path: problems.Path, data: Mapping) -> str | None:
        # confirm and revert are also options of a move, with true or false.
        keys = [key for key in data if key in actions.TYPES and
                not isinstance(data[key], bool)]
        if len(keys) == 1:
            return keys[0]
        if keys:
            self._errors.add(path, 'has more than one action: '
                                   f'{", ".join(keys)}')
            return None
        close = difflib.get_close_matches(next(iter(data)), actions.TYPES, n=1)
        hint = (f'; did you mean {close[0]!r}?' if close else
                f'; known: {", ".join(actions.TYPES)}')
        self._errors.add(path, f'has no known action{hint}')
        return None

    def _targets(self, path: problems.Path, action: str,
                 patterns: tuple[str, ...]) -> tuple[str, ...]:
        if action in actions.HOST_TYPES:
            return tuple(self._patterns.matching(
                path, 'host', patterns, self._known['host']))
        targets = tuple(self._patterns.matching(
            path, 'server', patterns, self._servers,
            functools.partial(self._servers_named, path)))
        if action == 'delete':
            for name in targets:
                del self._servers[name]
        return targets

    def _servers_named(self, path: problems.Path, name: str) -> list[str]:
        servers = [each for each in self._meant.get(name, ())
                   if each in self._servers]
        if len(servers) > 1:
            self._errors.add(
                path, f'there are {len(servers)} servers {name!r}: '
                      f'{", ".join(servers[:_SHOWN])}'
                      f'{", ..." if len(servers) > _SHOWN else ""}')
        return servers

    def _name_booted(self, path: problems.Path,
                     step: actions.Boot) -> tuple[str, ...]:
        if _GLOB.search(step.boot):
            self._errors.add(path, 'a server name must not have *, ? or [')
        self._booted_count += step.count or 1
        most = files.max_items() // _ITEMS_PER_SERVER
        if self._booted_count > most:
            self._errors.add((*path[:-1], 'count'), str(files.beyond(
                f'{most} servers in all steps')))
            self._errors.stop_if_wrong()
        names = ((step.boot,) if step.count is None else
                 tuple(f'{step.boot}-{n}' for n in range(1, step.count + 1)))
        duplicate = next((n for n in names if n in self._servers), None)
        if duplicate is not None:
            self._errors.add(path, f'there is a server {duplicate!r} already')
        self._servers.update(dict.fromkeys(names))
        return names

    def _is_sriov(self, network: str) -> bool:
        return network in self._networks and (
            self._networks[network].vnic_type not in (None, 'normal'))

    def _check(self, path: problems.Path, step: actions.Step) -> None:
        match step:
            case actions.Boot():
                for i, name in enumerate(step.networks):
                    if step.multi_create and self._is_sriov(name):
                        self._errors.add(
                            (*path, 'networks', i),
                            'a request for several servers cannot have the '
                            'ports that SR-IOV needs')
                if step.host is not None and step.force is not None:
                    self._errors.add((*path, 'force'),
                                     'cannot be combined with host')
            case actions.PortStep():
                if self._is_sriov(step.network):
                    self._errors.add((*path, 'network'),
                                     'ports of SR-IOV come and go with the '
                                     'server here')
            case actions.ColdMove():
                if step.revert and step.confirm:
                    self._errors.add((*path, 'revert'),
                                     'cannot be combined with confirm: true')

    def _check_expectation(self, path: problems.Path,
                           expect: actions.ServerExpectation,
                           targets: Collection[str]) -> None:
        for key in ('placed', 'refused'):
            count = getattr(expect, key)
            if count is False:
                self._errors.add((*path, key), 'must be true or a number; say '
                                               '0 for none')
            elif count is not True and (count or 0) > len(targets):
                self._errors.add((*path, key), f'{count} is more than the '
                                               f'{len(targets)} servers of '
                                               'the step')
