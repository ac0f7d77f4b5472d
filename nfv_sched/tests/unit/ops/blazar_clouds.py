# SPDX-License-Identifier: Apache-2.0
"""A small cloud with OpenStack Blazar, and a stand-in for its filter."""

import dataclasses
import importlib.util

from nova.scheduler import filters as nova_filters
from oslo_config import fixture as config_fixture

from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.tests.unit.ops import small_clouds

#: A reservation of a host, one of instances, and one that has not started.
WHOLE = '5c3e4a9e-0b7f-4f0e-9a39-0d1a0c7d2f11'
SLOTS = '7d3e4a9e-0b7f-4f0e-9a39-0d1a0c7d2f22'
LATER = '9e3e4a9e-0b7f-4f0e-9a39-0d1a0c7d2f33'
_SLOT = f'CUSTOM_RESERVATION_{SLOTS.upper().replace("-", "_")}'

#: The filter of blazar-nova, and whether it is installed.
REAL = 'blazarnova.scheduler.filters.blazar_filter.BlazarFilter'
IS_INSTALLED = importlib.util.find_spec('blazarnova') is not None


class BlazarFilter(nova_filters.BaseHostFilter):
    """As the filter of blazar-nova, with its default options."""

    def host_passes(self, host_state, spec_obj):
        pools = [each for each in host_state.aggregates
                 if each.name == 'freepool' or str(
                     each.availability_zone).startswith('blazar_')]
        wanted = spec_obj.get_scheduler_hint('reservation')
        if wanted:
            return any(
                each.name in wanted and spec_obj.project_id in (
                    each.metadata.get('blazar:owner'), *each.metadata)
                for each in pools)
        return not pools or ('aggregate_instance_extra_specs:reservation'
                             in spec_obj.flavor.extra_specs)


STAND_IN = f'{__name__}.BlazarFilter'


def enable(test, path=STAND_IN):
    """Have the nova.conf of this machine name a filter."""
    test.useFixture(config_fixture.Config(nova_internals.CONF)).config(
        group='filter_scheduler', available_filters=available(path))


def available(path):
    return ['nova.scheduler.filters.all_filters',
            'nfv_sched.filters.all_filters', path]


def _provider(host):
    return snapshot.Provider(
        uuid=f'1{host.uuid[1:]}', name=f'blazar_{host.hypervisor}',
        parent=host.uuid)


def cloud(path=STAND_IN):
    """Hosts of Blazar: free, reserved, with two instances reserved; one not.

    :param path: class of the filter; None if it is not enabled
    """
    hosts = [small_clouds.host('free', aggregates=('freepool',)),
             small_clouds.host('whole', aggregates=(WHOLE,),
                               zone=f'blazar_{WHOLE}'),
             small_clouds.host('slots', aggregates=('freepool', SLOTS))]
    hosts = [dataclasses.replace(
        host, providers=(*host.providers, _provider(host))) for host in hosts]
    root, own = hosts[2].providers
    hosts[2] = dataclasses.replace(hosts[2], providers=(
        root, dataclasses.replace(own, inventories={
            _SLOT: snapshot.Inventory(total=2, max_unit=1)})))
    found = small_clouds.cloud(
        *hosts, small_clouds.host('other'),
        filters=[*small_clouds.FILTERS, 'AggregateInstanceExtraSpecsFilter',
                 *([] if path is None else ['BlazarFilter'])],
        aggregates=(
            snapshot.Aggregate(name='freepool', hosts=('free', 'slots')),
            snapshot.Aggregate(name=WHOLE, hosts=('whole',), metadata={
                'availability_zone': f'blazar_{WHOLE}',
                'blazar:owner': 'alpha'}),
            snapshot.Aggregate(name=SLOTS, hosts=('slots',), metadata={
                'reservation': SLOTS, 'filter_tenant_id': 'beta',
                'blazar:owner': 'beta'}),
            snapshot.Aggregate(name=LATER, metadata={
                'availability_zone': f'blazar_{LATER}',
                'blazar:owner': 'alpha'})),
        flavors=(small_clouds.flavor(), small_clouds.flavor(
            name=f'reservation:{SLOTS}', **{
                'aggregate_instance_extra_specs:reservation': SLOTS,
                f'resources:{_SLOT}': '1'})))
    if path is not None:
        found.options['filter_scheduler']['available_filters'] = (
            available(path))
    return found
