# SPDX-License-Identifier: Apache-2.0

"""What the functional tests of network load share.

Nova's fixture stands for Neutron inside Nova.  The plugin reads the same
ports over HTTP, with the real client, from a server that shows what Nova has
bound there, and whatever else a test puts on its hosts.  The ledger is
published when a test says so.
"""

import fixtures
from oslo_utils import uuidutils

from nfv_sched.ledger import neutron
from nfv_sched.ledger import publisher
from nfv_sched.limits import names
from nfv_sched.tests.functional import base
from nfv_sched.tests import placement_api
from nfv_sched.tests.unit.limits import neutron_api

#: Rules of the security group that ports have by default.
DEFAULT_RULES = 4


def undoubted():
    """Accept what Neutron shows in this context, as if it were old."""
    return fixtures.MonkeyPatch(
        'nfv_sched.ledger.neutron.ReadingCheck.check',
        lambda _check, _previous, _snapshot: [])


class NeutronView(neutron_api.NeutronAPI):
    """Neutron's API to the ports of Nova's fixture.

    ``ports``, ``rules``, ``groups``, ``networks`` and ``agents`` come on top.
    """

    fixture = None

    def items(self, resource):
        items = super().items(resource)
        if self.fixture is None:
            return items
        groups = list(self.fixture._security_groups.values())
        if resource == 'ports':
            items = items + [
                self._port(port) for port in list(
                    self.fixture._ports.values())]
        elif resource == 'networks':
            items = items + list(self.fixture._networks.values())
        elif resource == 'security-groups':
            items = items + groups
        elif resource == 'security-group-rules':
            items = items + [
                {'id': rule, 'security_group_id': group['id']}
                for group in groups
                for rule in group['security_group_rules']]
        return items

    def fixture_ports(self):
        """The ports of the fixture, to be changed as by their project."""
        return list(self.fixture._ports.values())

    def _port(self, port):
        # The fixture leaves the host in the port when it deletes a binding.
        hosts = [host for host, binding in list(
            self.fixture._port_bindings.get(port['id'], {}).items())
            if binding['status'] == 'ACTIVE']
        shown = {
            'device_owner': '', 'device_id': '',
            'project_id': port.get('tenant_id', ''),
            # As Neutron does, if a port is created without groups.
            'security_groups': [self.fixture.security_group['id']], **port}
        shown['binding:host_id'] = hosts[0] if hosts else ''
        return shown


class LedgerCloud:
    """A cloud whose ledger can be published; a mixin."""

    def start_apis(self, neutron_server):
        self.neutron_api = neutron_server.start_for(self)
        self.placement_api = placement_api.PlacementAPI(
            self.placement.fixture.conf_fixture.conf).start_for(self)
        for group, api in (('neutron', self.neutron_api),
                           ('placement', self.placement_api)):
            self.flags(auth_type='none', endpoint_override=api.url,
                       group=group)

    def provider(self, host):
        return names.provider_uuid(self.compute_rp_uuids[host])

    def release(self, consumer):
        self.assertEqual(204, self.placement.delete(
            f'/allocations/{consumer}').status)

    def unbind(self, ports):
        for port in ports:
            self.neutron_api.ports.remove(port)


class NetworkCloudTestCase(LedgerCloud, base.NFVCloudTestCase):
    """A cloud with limits of ports and rules.

    A host has 6 ports for guests, beside 4 physical ones, and no limit of
    rules, unless a test case says otherwise.
    """

    extra_filters = ['NFVTopologyFilter', 'VSwitchPortLimitFilter',
                     'SecurityRuleLimitFilter']

    #: Options of [nfv_sched].
    limits = {'vswitch_ports_per_node': 10, 'security_rules_per_node': 0}
    #: Hosts that are there, and published, from the beginning.
    hosts = ()

    def configure(self):
        super().configure()
        self.start_apis(NeutronView())
        self.flags(neutron_lookup_timeout=20.0, **self.limits,
                   group='nfv_sched')

    def setUp(self):
        super().setUp()
        self.neutron_api.fixture = self.neutron
        self.log = self.useFixture(fixtures.FakeLogger('nfv_sched'))
        self.small = self.flavor_with({}, vcpus=1, memory_mb=64)
        for host in self.hosts:
            self.start_host(host)
        if self.hosts:
            self.publish()

    # -- the ledger ---------------------------------------------------------

    def publish(self):
        """Do a round of publication, for all hosts.

        By a new publisher: others pass over a host where nothing seems to have
        changed.  What Neutron shows it has shown for long.
        """
        self.publisher = publisher.Publisher()
        self.addCleanup(self.publisher.close)
        with undoubted():
            done = self.publisher.round()
        self.assertFalse(done.failed, done)

    # -- Neutron ------------------------------------------------------------

    def on_host(self, host):
        """What is really on a host: ports and rules of its switch."""
        usage = neutron.read_snapshot().host(host)
        return usage.vswitch_ports, usage.rules

    def bind(self, host, count, owner='network:dhcp', **kwargs):
        """Put ports on a host without Nova; returns them."""
        ports = [neutron_api.port(owner=owner, host=host, **kwargs)
                 for _ in range(count)]
        self.neutron_api.ports.extend(ports)
        return ports

    def security_group(self, rules):
        """Create a security group; returns how a request names it."""
        group = uuidutils.generate_uuid()
        self.neutron._security_groups[group] = {
            'id': group, 'name': group, 'description': '',
            'tenant_id': self.neutron.tenant_id,
            'project_id': self.neutron.tenant_id,
            'security_group_rules': [
                uuidutils.generate_uuid() for _ in range(rules)]}
        return {'name': group}

    def set_metadata(self, host, **metadata):
        aggregate = self.admin_api.post_aggregate(
            {'aggregate': {'name': host}})
        self.admin_api.add_host_to_aggregate(aggregate['id'], host)
        self.admin_api.post_aggregate_action(aggregate['id'], {
            'set_metadata': {'metadata': metadata}})

    # -- guests -------------------------------------------------------------

    def guest(self, nics=1, host=None, expect='ACTIVE', **request):
        return self.boot(self.small, networks=[base.TUNNELED] * nics,
                         host=host, expect=expect, **request)

    def guests(self, count, nics=1, expect='ACTIVE', **kwargs):
        return self.boot_many(
            self.small, count, expect=expect,
            networks=[{'uuid': base.TUNNELED}] * nics, **kwargs)

    def refused(self, *words, **kwargs):
        server = self.guest(expect='ERROR', **kwargs)
        self.assertRefused(server, *words)
        return server
