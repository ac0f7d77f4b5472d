# SPDX-License-Identifier: Apache-2.0
"""Users, catalogue, images, flavors and networks, through the public APIs.

What is there already is left alone.
"""

import openstack

from nfv_sched.tests.live.bed import layout as bed_layout

IMAGE = 'tiny'
#: who nova-scheduler and nfv-sched-ledger are for Neutron
SCHEDULER_USER = 'nfv-sched'
NETWORKS = {
    'tenant': {},
    'physnet0': {'provider_network_type': 'vlan',
                 'provider_segmentation_id': 101,
                 'provider_physical_network': 'physnet0'},
    'physnet1': {'provider_network_type': 'vlan',
                 'provider_segmentation_id': 201,
                 'provider_physical_network': 'physnet1'},
}

_SERVICES = {
    'placement': ('placement', ''),
    'nova': ('compute', '/v2.1'),
    'neutron': ('network', ''),
    'glance': ('image', ''),
}
_PINNED = {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '1'}
_FLAVORS = {
    'pinned': _PINNED,
    'pinned-strict': {**_PINNED, 'nfv:vswitch_numa_affinity': 'strict'},
    'pinned-prefer': {**_PINNED, 'nfv:vswitch_numa_affinity': 'prefer'},
    'shared': {},
}


def connect(layout: bed_layout.Layout,
            tenant: bool = False) -> openstack.connection.Connection:
    """Connect as the administrator, or as the ordinary tenant."""
    return openstack.connect(
        load_envvars=False, load_yaml_config=False,
        region_name=bed_layout.REGION, **layout.credentials(tenant))


def identity(layout: bed_layout.Layout) -> None:
    cloud = connect(layout)
    keystone = cloud.identity
    project = (keystone.find_project('service') or
               keystone.create_project(name='service', domain_id='default'))
    roles = {role.name: role for role in keystone.roles()}
    if 'service' not in roles:
        roles['service'] = keystone.create_role(name='service')
    for name in (*_SERVICES, SCHEDULER_USER):
        user = _user(cloud, layout, name)
        for role in ('admin', 'service'):
            keystone.assign_project_role_to_user(project, user, roles[role])
    for name, (kind, path) in _SERVICES.items():
        _endpoints(cloud, name, kind,
                   layout.url('nova-api' if name == 'nova' else name, path))
    tenant = (keystone.find_project(bed_layout.TENANT) or
              keystone.create_project(name=bed_layout.TENANT,
                                      domain_id='default'))
    keystone.assign_project_role_to_user(
        tenant, _user(cloud, layout, bed_layout.TENANT), roles['member'])


def _user(cloud, layout, name):
    return (cloud.identity.find_user(name) or
            cloud.identity.create_user(
                name=name, password=layout.password, domain_id='default'))


def _endpoints(cloud, name, kind, url):
    service = (cloud.identity.find_service(name) or
               cloud.identity.create_service(name=name, type=kind))
    there = {endpoint.interface for endpoint in
             cloud.identity.endpoints(service_id=service.id)}
    for interface in {'public', 'internal', 'admin'} - there:
        cloud.identity.create_endpoint(
            service_id=service.id, interface=interface, url=url,
            region_id=bed_layout.REGION)


def image(layout: bed_layout.Layout) -> None:
    cloud = connect(layout)
    if not cloud.image.find_image(IMAGE):
        cloud.image.create_image(
            name=IMAGE, disk_format='raw', container_format='bare',
            visibility='public', data=b'\0' * 65536, validate_checksum=False)


def flavors(layout: bed_layout.Layout) -> None:
    """Flavors to try things with; tests make their own."""
    cloud = connect(layout)
    for name, extra_specs in _FLAVORS.items():
        if cloud.compute.find_flavor(name):
            continue
        flavor = cloud.compute.create_flavor(
            name=name, vcpus=2, ram=512, disk=1)
        if extra_specs:
            cloud.compute.create_flavor_extra_specs(flavor, extra_specs)


def networks(layout: bed_layout.Layout) -> None:
    """One shared network that is tunnelled, and one on each physical one."""
    cloud = connect(layout)
    for index, (name, provider) in enumerate(NETWORKS.items()):
        if cloud.network.find_network(name):
            continue
        network = cloud.network.create_network(
            name=name, is_shared=True, **provider)
        cloud.network.create_subnet(
            network_id=network.id, name=name, ip_version=4,
            cidr=f'10.{20 + index}.0.0/16', enable_dhcp=False)
