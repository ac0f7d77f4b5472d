#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""Read a cloud file into values of :mod:`.model`.

Everything wrong with a file is reported as an
:class:`~nfv_sched.simulator.cloud_file.problems.InputError` that names file,
line and field: text that is not YAML, duplicate keys, unknown keys, wrong
types, names of missing objects, dimensions that contradict each other.  Extra
specs of flavors are checked by a function that is passed in, so that this
module does not need Nova.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import typing as ty

from nfv_sched import policy
from nfv_sched.simulator.cloud_file import hosts as cloud_hosts
from nfv_sched.simulator.cloud_file import model
from nfv_sched.simulator.cloud_file import problems
from nfv_sched.simulator.cloud_file import schema
from nfv_sched.simulator.cloud_file import steps as cloud_steps
from nfv_sched.simulator.cloud_file import text as cloud_text


class _Loader:
    """Checks one parsed file and works out the fields that are no keys.

    :param found: collects the problems
    :param defaults: defaults of the configuration
    :param check_extra_spec: as for :func:`loads`
    """

    def __init__(self, found: problems.Problems, defaults: model.Defaults,
                 check_extra_spec: Callable[[str, str], str | None]):
        self._found = found
        self._defaults = defaults
        self._check_extra_spec = check_extra_spec

    def load(self, data) -> model.Cloud:
        """Read the whole file.

        :param data: the parsed file
        :raises InputError: if anything is wrong with it
        """
        found = self._found
        if data is None:
            raise problems.InputError([f'{found.path}: the file is empty'])
        schema.check(found, model.Cloud, data)
        found.stop_if_wrong()
        cloud = schema.read(found, model.Cloud, data)
        found.stop_if_wrong()
        if cloud.pci_aliases is not None and (
                'alias' in cloud.options.get('pci', {})):
            found.add(('options', 'pci', 'alias'),
                      'cannot be combined with pci_aliases')
        groups = cloud_hosts.Hosts(cloud, found, self._defaults).groups()
        # Without all hosts, references to them would look wrong.
        found.stop_if_wrong()
        names = dict.fromkeys(name for group in groups
                              for name in group.names)
        self._check_flavors(cloud)
        self._check_server_groups(cloud)
        service = cloud.network_service or (
            'ovs' if any(group.dhcp_servers or group.routers.count
                         for group in groups) else 'none')
        cloud = dataclasses.replace(
            cloud, path=found.path, groups=groups, network_service=service,
            aggregates=tuple(
                self._aggregate(i, aggregate, names)
                for i, aggregate in enumerate(cloud.aggregates)),
            networks=self._networks(cloud), settings=self._settings(cloud))
        return self._with_steps(cloud, list(names), {})

    def load_steps(self, data, base: model.Cloud,
                   servers: Mapping[str, Sequence[str]]) -> model.Cloud:
        """Read a file of steps for a cloud that is there already.

        :param data: the parsed file
        :param base: the cloud
        :param servers: as for ``cloud_file.steps.Steps``
        :returns: the cloud with what the file adds to it, and its steps
        :raises InputError: if anything is wrong with it
        """
        found = self._found
        if data is None:
            raise problems.InputError([f'{found.path}: the file is empty'])
        if isinstance(data, Mapping) and 'hosts' in data:
            found.add(('hosts',), 'the hosts are those of --from; a file of '
                                  'steps for it has none')
            found.stop_if_wrong()
        schema.check(found, model.WhatIf, data)
        found.stop_if_wrong()
        more = schema.read(found, model.WhatIf, data)
        found.stop_if_wrong()
        self._check_flavors(more)
        self._check_server_groups(more)
        cloud = dataclasses.replace(
            base, path=found.path, description=more.description,
            filters=more.filters, flavors={**base.flavors, **more.flavors},
            images={**base.images, **more.images},
            networks={**base.networks, **self._networks(more)},
            security_groups={**base.security_groups, **more.security_groups},
            server_groups={**base.server_groups, **more.server_groups},
            steps=more.steps, settings=base.settings + self._settings(more))
        return self._with_steps(cloud, [
            name for group in cloud.groups for name in group.names], servers)

    def _with_steps(self, cloud: model.Cloud, hosts: Sequence[str],
                    servers: Mapping[str, Sequence[str]]) -> model.Cloud:
        """The cloud with its steps read.

        :raises InputError: if anything is wrong with the file
        """
        reader = cloud_steps.Steps(cloud, hosts, self._found, servers)
        steps = [reader.read(number, step)
                 for number, step in enumerate(cloud.steps, 1)]
        self._found.stop_if_wrong()
        return dataclasses.replace(cloud, steps=tuple(steps))

    def _networks(self, cloud: model.WhatIf) -> dict[str, model.Network]:
        return {name: self._network(network)
                for name, network in cloud.networks.items()}

    def _settings(self, cloud: model.WhatIf
                  ) -> tuple[tuple[str, str, ty.Any, int], ...]:
        return tuple(
            (group, name, value, self._found.line(('options', group, name)))
            for group, of_group in cloud.options.items()
            for name, value in of_group.items())

    def _check_flavors(self, cloud: model.WhatIf) -> None:
        for flavor in cloud.flavors.values():
            if not flavor.validate:
                continue
            if len(flavor.extra_specs) > policy.MOST_SPECS:
                self._found.add(
                    ('flavors', flavor.name, 'extra_specs'),
                    f'{len(flavor.extra_specs)} extra specs are more than '
                    f'{policy.MOST_SPECS}')
                continue
            for key, value in flavor.extra_specs.items():
                complaint = self._check_extra_spec(key, value)
                if complaint:
                    self._found.add(
                        ('flavors', flavor.name, 'extra_specs', key),
                        f'the Nova API refuses this: {complaint}')

    def _check_server_groups(self, cloud: model.WhatIf) -> None:
        for group in cloud.server_groups.values():
            if (group.max_server_per_host is not None and
                    group.policy != 'anti-affinity'):
                self._found.add(
                    ('server_groups', group.name, 'max_server_per_host'),
                    'is for the policy anti-affinity')

    def _network(self, network: model.Network) -> model.Network:
        """The network with ``tunneled`` set."""
        path = ('networks', network.name)
        physical = network.physical_network is not None
        tunneled = network.tunneled
        if tunneled is None:
            tunneled = not physical
        if tunneled == physical:
            self._found.add(path, 'must have a physical_network or be '
                                  'tunneled, one of the two')
        if network.vnic_type == 'normal':
            if network.numa_policy is not None:
                self._found.add((*path, 'numa_policy'),
                                'is for the vnic_type direct or '
                                'direct-physical')
        elif not physical:
            self._found.add((*path, 'vnic_type'), 'needs a physical_network')
        return dataclasses.replace(network, tunneled=tunneled)

    def _aggregate(self, number: int, aggregate: model.Aggregate,
                   hosts: Sequence[str]) -> model.Aggregate:
        """The aggregate with patterns replaced by names of hosts."""
        members: dict[str, None] = {}
        for pattern in aggregate.hosts:
            matches = cloud_steps.matching(pattern, hosts)
            if not matches:
                self._found.known(('aggregates', number, 'hosts'), 'host',
                                  pattern, hosts)
            members.update(dict.fromkeys(matches))
        return dataclasses.replace(aggregate, hosts=tuple(members))


def _accept(name: str, value: str) -> str | None:
    return None


def loads(text: str, path: str = '<text>',
          defaults: model.Defaults = model.Defaults(),
          check_extra_spec: Callable[[str, str], str | None] = _accept,
          ) -> model.Cloud:
    """Build a cloud from YAML text.

    :param text: the YAML
    :param path: name of the file for messages
    :param defaults: defaults of the configuration
    :param check_extra_spec: function from name and value of an extra spec to
        what is wrong with it, or None
    :returns: the cloud
    :raises InputError: if anything is wrong with the text
    """
    data, marks = cloud_text.parse(text, path)
    return _Loader(problems.Problems(path, marks), defaults,
                   check_extra_spec).load(data)


def loads_steps(text: str, path: str, base: model.Cloud,
                servers: Mapping[str, Sequence[str]],
                check_extra_spec: Callable[[str, str], str | None] = _accept,
                ) -> model.Cloud:
    """Build a cloud from one that is there, and YAML text with steps for it.

    :param text: the YAML
    :param path: name of the file for messages
    :param base: the cloud that is there
    :param servers: its servers: each name, or UUID, by which steps can say
        which -> names of these servers
    :param check_extra_spec: as for :func:`loads`
    :returns: the cloud with what the text adds to it, and its steps
    :raises InputError: if anything is wrong with the text
    """
    data, marks = cloud_text.parse(text, path)
    return _Loader(problems.Problems(path, marks), model.Defaults(),
                   check_extra_spec).load_steps(data, base, servers)


def load(path: str, defaults: model.Defaults = model.Defaults(),
         check_extra_spec: Callable[[str, str], str | None] = _accept,
         ) -> model.Cloud:
    """Build a cloud from a YAML file.

    :param path: the file
    :param defaults: defaults of the configuration
    :param check_extra_spec: as for :func:`loads`
    :returns: the cloud
    :raises InputError: if anything is wrong with the file
    """
    return loads(cloud_text.read(path), path, defaults, check_extra_spec)
