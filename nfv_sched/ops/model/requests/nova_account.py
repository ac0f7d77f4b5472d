# SPDX-License-Identifier: Apache-2.0
"""Connect to other services with the account that Nova has for Placement."""

from collections.abc import Iterator
import contextlib

from keystoneauth1 import loading as ks_loading
from openstack import connection as sdk_connection

from nfv_sched.nova import database

#: Section of nova.conf with the account: [glance] and [keystone] have none.
SECTION = 'placement'


@contextlib.contextmanager
def connection(service_type: str) -> Iterator[sdk_connection.Connection]:
    """Connect to a service, within this context.

    :param service_type: such as ``image``
    :raises Exception: an error of keystoneauth1 or the SDK, if the account
        cannot be used
    """
    conf = database.CONF
    session = ks_loading.load_session_from_conf_options(
        conf, SECTION,
        auth=ks_loading.load_auth_from_conf_options(conf, SECTION))
    try:
        yield sdk_connection.Connection(
            session=session, oslo_conf=conf, service_types={service_type})
    finally:
        session.session.close()
