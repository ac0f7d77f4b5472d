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
"""Snapshots made by hand, and a source that has them at hand."""

import time

import fixtures

from nfv_sched.network import ledger_reader
from nfv_sched.network import neutron
from nfv_sched.network import usage


def snapshot(ports=(), rules=None, default_groups=None, agents=(),
             age=0.0, dhcp=None, routers=None):
    """A snapshot.

    :param ports: keyword arguments of a port each; see :func:`add_port`
    :param rules: security group -> number of rules
    :param default_groups: project -> security group
    :param agents: types of agents
    :param age: seconds
    :param dhcp: host -> DHCP servers
    :param routers: host -> routers
    """
    builder = usage.SnapshotBuilder()
    for number, port in enumerate(ports):
        add_port(builder, number, **port)
    for group, count in (rules or {}).items():
        for _ in range(count):
            builder.add_rule(group)
    for project, group in (default_groups or {}).items():
        builder.add_default_group(project, group)
    for host, count in (dhcp or {}).items():
        builder.add_agent_type('DHCP agent')
        builder.add_dhcp_agent(host, count)
    for host, count in (routers or {}).items():
        builder.add_l3_agent(host, count)
    builder._taken = time.monotonic() - age
    return builder.build()


def add_port(builder, number, host='host1', instance='', owner='compute:nova',
             vnic_type='normal', groups=(), id=None):
    """Add one port."""
    builder.add_port(id or f'port{number}', owner, instance or f'vm{number}',
                     host, vnic_type, tuple(groups))


class Source(fixtures.Fixture):
    """Stands in for Neutron's source of the process.

    :param value: snapshot, None if there is none
    """

    def __init__(self, value):
        self.value = value

    def _setUp(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.network.neutron.SOURCE', self))

    def get(self):
        """See ``SnapshotSource``."""
        return self.value

    def is_fresh(self, value):
        """See ``SnapshotSource``."""
        return neutron.SnapshotSource.is_fresh(self, value)

    _conf = neutron.CONF

    def stop(self):
        """Nothing runs."""


class _Nobody(dict):
    def get(self, key, default=None):
        return frozenset()


#: For :class:`Ledger`: no ledger has room, whatever for.
NOBODY = _Nobody()


class Ledger(fixtures.Fixture):
    """Stands in for the process's reader of the ledgers in Placement.

    :param published: UUIDs of nested providers
    :param room: (resource class, amount) -> those that have so much left; the
        others are not known
    :param renewed: the same if the ledgers are read again; None if they
        cannot be
    """

    def __init__(self, published=(), room=None, renewed=None):
        self.published = frozenset(published)
        self.known = room or {}
        self.renewed = renewed
        self.wanted = set()
        self.renewals = 0

    def _setUp(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.network.ledger_reader.SOURCE', self))

    def _reading(self, room):
        if room is not NOBODY:
            room = {key: frozenset(hosts) for key, hosts in room.items()}
        return ledger_reader.Reading(self.published, room)

    def get(self):
        """See ``LedgerSource``."""
        return self._reading(self.known)

    def want(self, resource_class, amount):
        """See ``LedgerSource``."""
        self.wanted.add((resource_class, amount))

    def renew(self, since, timeout):
        """See ``LedgerSource``."""
        self.renewals += 1
        return None if self.renewed is None else self._reading(self.renewed)

    def stop(self):
        """Nothing runs."""
