# SPDX-License-Identifier: Apache-2.0
"""Read other services with the account that Nova has for Placement."""

from collections.abc import Iterator
import contextlib

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading as ks_loading
from openstack import connection as sdk_connection
from openstack import exceptions as sdk_exceptions

from nfv_sched.base import http_limits
from nfv_sched.nova import database

#: Section of nova.conf with the account: [glance] and [keystone] have none.
SECTION = 'placement'

_ERRORS = (ks_exceptions.ClientException, sdk_exceptions.SDKException, OSError)


@contextlib.contextmanager
def reading(service_type: str, name: str, error: type[Exception],
            ) -> Iterator[sdk_connection.Connection]:
    """Connect to a service, and limit the size and time of what is read.

    :param error: raised if the account cannot be used, or the service not read
    """
    conf = database.CONF
    with contextlib.ExitStack() as stack:
        try:
            session = ks_loading.load_session_from_conf_options(
                conf, SECTION,
                auth=ks_loading.load_auth_from_conf_options(conf, SECTION))
            stack.callback(session.session.close)
            connected = sdk_connection.Connection(
                session=session, oslo_conf=conf, service_types={service_type})
        except _ERRORS as exc:
            raise error(f'no connection to {name}: '
                        f'{http_limits.reason(exc)}') from exc
        try:
            with http_limits.limited(session):
                yield connected
        except (*http_limits.MALFORMED, *_ERRORS) as exc:
            raise error(
                f'{name} cannot be read: {http_limits.reason(exc)}') from exc
