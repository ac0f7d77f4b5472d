# SPDX-License-Identifier: Apache-2.0
"""Limits of ports and rules, on Nova's HostState and RequestSpec."""

from nova import exception
from nova import objects
from nova.scheduler import filters as nova_filters

from nfv_sched.filters import security_rule_limit
from nfv_sched.filters import vswitch_port_limit
from nfv_sched.scheduler import notes
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.limits import snapshots

UUIDS = ['11111111-0000-0000-0000-%012d' % number for number in range(9)]
PORTS = vswitch_port_limit.VSwitchPortLimitFilter()
RULES = security_rule_limit.SecurityRuleLimitFilter()


class NetworkTestCase(base.TestCase):
    def setUp(self):
        super().setUp()
        self.handler = nova_filters.HostFilterHandler()
        self.lookups = snapshots.Lookups()
        #: What Neutron shows, and what the ledger's service has published.
        self.shown = snapshots.snapshot()
        #: Host -> resource class -> what servers have allocated there.
        self.allocated = {}
        self.flags(vswitch_physical_ports=2, vswitch_ports_per_node=10,
                   expose_reasons='summary')

    def spec(self, ports=1, groups=(), instance=UUIDS[0], move=False,
             devices=(), ids=()):
        """Return a request for so many new ports, or for these that exist."""
        spec = clouds.spec(numa=False, move=move, devices=devices)
        nics = [objects.NetworkRequest(port_id=port) for port in ids] or [
            objects.NetworkRequest(network_id='net') for _ in range(ports)]
        if not ports and not ids:
            nics = [objects.NetworkRequest(network_id='none')]
        spec.requested_networks = objects.NetworkRequestList(objects=nics)
        spec.security_groups = objects.SecurityGroupList()
        spec.security_groups.objects = [
            objects.SecurityGroup(uuid=group) for group in groups]
        spec.project_id = 'p'
        spec.instance_uuid = instance
        notes.note_of(spec).use(self.lookups)
        return spec

    def host(self, name='host1', uuid=None, metadata=None):
        host = clouds.host(name)
        host.uuid = uuid or UUIDS[4 + int(name[-1])]
        host.aggregates = []
        if metadata:
            host.aggregates.append(objects.Aggregate(
                id=1, hosts=[name], metadata=metadata))
        return host

    def neutron(self, *ports, **figures):
        """What Neutron shows; ``number`` is how many such ports."""
        expanded = []
        for port in ports:
            port = dict(port)
            expanded += [port] * port.pop('number', 1)
        return self.show(snapshots.snapshot(expanded, **figures))

    def show(self, snapshot):
        """From now on Neutron shows this; None if it does not answer."""
        self.lookups.value = snapshot
        if snapshot is not None:
            self.shown = snapshot

    def answered(self, hosts, spec):
        """Placement has answered a query for these hosts."""
        notes.placement_answered(
            spec, snapshots.published(self.shown, hosts, self.allocated))

    def passing(self, hosts, spec, *filters, index=0):
        if notes.note_of(spec).ledgers is None:
            self.answered(hosts, spec)
        left = self.handler.get_filtered_objects(
            list(filters or (PORTS, RULES)), hosts, spec, index)
        return [host.host for host in left or ()]

    def refused(self, hosts, spec, *filters):
        error = self.assertRaises(
            exception.NoValidHost, self.passing, hosts, spec, *filters)
        return error.kwargs['reason']
