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
"""What the log and the tenant are told when no host is left for a server.

The log gets all reasons.  The tenant gets what ``[nfv_sched] expose_reasons``
allows, as the message of a ``NoValidHost``: Nova has no other way for it.  It
must not be raised once a server of the request has been claimed.
"""

from nova import exception
from oslo_log import log as logging

from nfv_sched import conf
from nfv_sched.nova import scheduler
from nfv_sched import reasons
from nfv_sched.request import RequestNote

LOG = logging.getLogger(__name__)

CONF = scheduler.CONF
conf.register_opts(CONF)

_LOGGED_HOSTS_BYTES = 4096


def resolve(reason: reasons.Lazy) -> reasons.Reason:
    """The reason itself, worked out now if it was not before; never raises.

    :param reason: a reason, or a function that works it out
    """
    try:
        return reasons.resolve(reason)
    except Exception:
        LOG.exception('The reason of a refusal cannot be worked out')
        return reasons.Reason(
            reasons.CAPACITY, 'NUMA topology', 'room needed', 'none')


def tell(name: str, request_note: RequestNote, index: int | None) -> None:
    """Log the reasons and, if the operator allows it, tell the tenant.

    :param name: class name of the filter that refused the last host
    :param request_note: the note of the request
    :param index: number of the server among those of the request, from 0;
        None if not known
    :raises nova.exception.NoValidHost: with the reason, for the first server
        of a request, if the operator lets tenants see reasons
    """
    rejected = [(host, resolve(reason))
                for host, reason in request_note.rejected]
    plain = [reason for _host, reason in rejected]
    LOG.info('%s refused the last host for server %s: %s', name,
             request_note.instance, reasons.summary_text(plain))
    if LOG.isEnabledFor(logging.DEBUG):
        LOG.debug('Refused hosts: %s', reasons.hosts_text(
            rejected, _LOGGED_HOSTS_BYTES))
    expose = CONF.nfv_sched.expose_reasons
    if index != 0 or expose == reasons.NONE:
        return
    if expose == reasons.HOSTS:
        text = reasons.hosts_text(rejected)
    elif expose == reasons.SUMMARY:
        text = reasons.summary_text(plain)
    else:
        text = reasons.policy_text(plain)
    raise exception.NoValidHost(reason=text)
