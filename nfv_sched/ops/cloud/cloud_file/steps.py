# SPDX-License-Identifier: Apache-2.0

"""Read and check the steps of a cloud file."""

from collections.abc import Collection, Mapping
import dataclasses
import difflib
import fnmatch
import re

from nfv_sched.base import files
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import marks
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import values

# Items of files.max_items() that a server counts for.
_ITEMS_PER_SERVER = 8
# Actions with a value that is not a list of names.
_OTHER_KEYS = ('boot', 'neutron')
# Most servers that a message names.
_SHOWN = 5
_GLOB = re.compile(r'[*?\[]')


class Patterns:
    """A comparison of names with patterns, a limited number of them."""

    def __init__(self, errors: problems.Problems):
        self._errors = errors
        self._compared = 0

    def matching(self, path: problems.Path, pattern: str,
                 names: Collection[str]) -> list[str]:
        """Return the names that match a pattern with ``*``, ``?`` or ``[``.

        A pattern that is itself a name matches only that one.

        :raises InputError: if too many names were compared
        """
        if pattern in names:
            return [pattern]
        if not _GLOB.search(pattern):
            return []
        self._compared += len(names)
        if self._compared > files.max_items():
            self._errors.add(path, str(files.beyond(
                f'{files.max_items()} names to compare with patterns')))
            self._errors.stop_if_wrong()
        return [name for name in names if fnmatch.fnmatchcase(name, pattern)]


class Steps:
    """A reader of the steps of a cloud, one after the other.

    :param start: the cloud, without steps
    """

    def __init__(self, start: scenario.Scenario, errors: problems.Problems):
        self._errors = errors
        self._patterns = Patterns(errors)
        self._booted_count = 0
        self._networks = start.networks
        # Steps cannot use an ambiguous name.
        self._meant = scenario.server_names(start.cloud)
        # Names of the servers that exist at the step.
        self._servers: dict[str, None] = dict.fromkeys(
            name for names in self._meant.values() for name in names)
        self._known: Mapping[str, Collection[str]] = {
            'flavor': {flavor.name for flavor in start.cloud.flavors},
            'image': start.images, 'network': start.networks,
            'security group': start.security_groups,
            'server group': start.server_groups,
            'host': dict.fromkeys(
                host.name for host in scenario.hosts_of(start.cloud)),
            'place': {place for places in start.places.values()
                      for place in places}}

    def read(self, number: int, data: Mapping) -> actions.Step | None:
        """Read an entry of ``steps``.

        :param number: position in the file, from 1
        :returns: the step; None if it has problems that prevent reading it
        """
        path: problems.Path = ('steps', number - 1)
        action = self._action(path, data)
        if action is None:
            return None
        kind = actions.TYPES[action]
        names: tuple[str, ...] | None = ()
        if action not in _OTHER_KEYS:
            names = codec.decode_file(
                values.Names, data[action], self._errors, (*path, action))
            data = {key: value for key, value in data.items()
                    if key != action}
        step = codec.decode_file(kind, data, self._errors, path)
        if step is None or names is None:
            return None
        step = dataclasses.replace(
            step, action=action, number=number, line=self._errors.line(path),
            targets=self._name_booted((*path, action), step)
            if action == 'boot'
            else self._targets((*path, action), action, names),
            expect=step.expect and self._with_lines(path, step.expect))
        names_by_kind = {**self._known, 'server in this step': step.targets}
        for name_path, mark, name in marks.find(
                kind, step, values.NameOf, path):
            self._errors.known(
                name_path, mark.kind, name, names_by_kind[mark.kind])
        self._check(path, step)
        if step.expect is not None:
            self._check_expectation((*path, 'expect'), step.expect,
                                    step.targets)
            for name, expect in step.expect.servers.items():
                self._check_expectation((*path, 'expect', 'servers', name),
                                        expect, (name,))
        return step

    def _with_lines(self, path: problems.Path,
                    expect: actions.Expectation) -> actions.Expectation:
        path = (*path, 'expect')
        return dataclasses.replace(
            expect, line=self._errors.line(path), servers={
                name: dataclasses.replace(of_server, line=self._errors.line(
                    (*path, 'servers', name)))
                for name, of_server in expect.servers.items()})

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
        close = difflib.get_close_matches(next(iter(data)), actions.TYPES,
                                          n=1)
        hint = (f'; did you mean {close[0]!r}?' if close else
                f'; known: {", ".join(actions.TYPES)}')
        self._errors.add(path, f'has no known action{hint}')
        return None

    def _targets(self, path: problems.Path, action: str,
                 patterns: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the servers or hosts of a step."""
        kind, names = (('host', self._known['host'])
                       if action in actions.HOST_TYPES
                       else ('server', self._servers))
        targets: dict[str, None] = {}
        for name in patterns:
            matches = self._patterns.matching(path, name, names)
            if not matches and kind == 'server':
                matches = [each for each in self._meant.get(name, ())
                           if each in self._servers]
                if len(matches) > 1:
                    self._errors.add(
                        path, f'there are {len(matches)} servers {name!r}: '
                              f'{", ".join(matches[:_SHOWN])}'
                              f'{", ..." if len(matches) > _SHOWN else ""}')
            if not matches:
                self._errors.known(path, kind, name, names)
            targets.update(dict.fromkeys(matches))
        if action == 'delete':
            for name in targets:
                del self._servers[name]
        return tuple(targets)

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
        """Check keys of a step that exclude each other."""
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
