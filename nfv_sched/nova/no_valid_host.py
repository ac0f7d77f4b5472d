# SPDX-License-Identifier: Apache-2.0
"""Follow the requests of nova-scheduler: Placement's answers, and refusals.

Nova tells filters nothing of what Placement has answered.  It logs what
Placement was asked and how many hosts each filter left, and keeps neither.
So methods of it are wrapped, and with a journal the filters as they are
seen for the first time.  The wrappers change no result, and of exceptions only
the reason in ``NoValidHost``.
"""

from collections.abc import Callable, Iterable
import functools
import sys
import threading
import typing as ty
from urllib import parse

from nova import exception
from oslo_log import log as logging

from nfv_sched.nova import fields
from nfv_sched.nova import scheduler

LOG = logging.getLogger(__name__)

#: All methods of Nova that are wrapped in a running nova-scheduler; beside
#: them, with a journal, ``filter_all`` of the enabled filters.
WRAPPED = ('HostState.consume_from_request',
           'SchedulerManager.select_destinations',
           'SchedulerReportClient.get_allocation_candidates')

#: The request that this thread schedules.
_THREAD = threading.local()


class FilterRun(ty.NamedTuple):
    filter: str  #: class name
    given: list  #: ``HostState`` of each host that it was given
    left: list  #: those that it passed

    @property
    def refused(self) -> list[str]:
        passing = set(map(id, self.left))
        return [host_state.host for host_state in self.given
                if id(host_state) not in passing]


class FollowedRequest:
    """A request on its way through nova-scheduler.

    :ivar spec_obj: ``nova.objects.RequestSpec``; None if not known
    :ivar runs: filters that have run for the last server that Nova looked for
        a host for
    :ivar answered: whether Placement has answered each query
    :ivar candidates: whether an answer had allocation candidates
    :ivar summaries: provider summaries of all answers; None if there are none
    """

    def __init__(self, spec_obj, servers: Iterable[str] | None) -> None:
        self.spec_obj = spec_obj
        self.servers = tuple(servers or ())
        self.runs: list[FilterRun] = []
        self.answered, self.candidates = True, False
        self.summaries: dict | None = None
        self._resources: list = []

    def queried(self, resources, answer) -> None:
        # After an error the answer is None, or a tuple that begins with None.
        self._resources.append(resources)
        requests, summaries = answer[:2] if answer else (None, None)
        if summaries is not None:
            # Nova merges the answer to its second query into the first.
            self.summaries = {**(self.summaries or {}), **summaries}
        self.answered = self.answered and requests is not None
        self.candidates = self.candidates or bool(requests)

    def queries(self) -> tuple[str, ...]:
        return tuple([
            '&'.join([f'{key}={value}' for key, value in parse.parse_qsl(
                resources.to_querystring()) if key != 'limit'])
            for resources in self._resources])

    def ran(self, run: FilterRun, spec_obj) -> None:
        """Note a run of a filter; forget those before it began anew."""
        self.spec_obj = spec_obj
        if any(run.filter == before.filter for before in self.runs):
            self.runs = []
        self.runs.append(run)

    @property
    def filtered(self) -> bool:
        return bool(self.runs) or self.answered and self.candidates

    @property
    def passed(self) -> bool:
        """Whether a host passed all filters; none run on forced hosts."""
        return bool(self.runs[-1].left) if self.runs else (
            self.filtered and bool(
                fields.get(self.spec_obj, 'force_hosts') or
                fields.get(self.spec_obj, 'force_nodes')))


def watch(answered: Callable[[ty.Any, ty.Any], None],
          is_wanted: Callable[[], bool],
          refused: Callable[[FollowedRequest, str], None],
          tenant_reason: Callable[[ty.Any], str]) -> None:
    """Register functions to be called for requests.

    Nothing happens in other processes than nova-scheduler, or if called again.

    :param answered: called with the RequestSpec and the provider summaries so
        far
    :param is_wanted: called at the start of each request; if it returns false,
        nothing is noted of filters, and ``refused`` not called
    :param refused: called with the request and the reason in
        Nova's ``NoValidHost``, which may be empty
    :param tenant_reason: called with the RequestSpec when Nova has removed its
        claims; returns the reason that replaces Nova's, or an empty text
    """
    # Filters and weighers are made after the manager, before any request.
    manager = sys.modules.get('nova.scheduler.manager')
    # In the module of the manager, which is where Nova looks them up.
    for owner, name, wrapper in (
            (getattr(manager, 'SchedulerManager', None),
             'select_destinations',
             functools.partial(_request, is_wanted, refused, tenant_reason)),
            (getattr(getattr(manager, 'report', None),
                     'SchedulerReportClient', None),
             'get_allocation_candidates',
             functools.partial(_query, answered)),
            (getattr(sys.modules.get('nova.scheduler.host_manager'),
                     'HostState', None),
             'consume_from_request', scheduler.place)):
        if hasattr(owner, name):
            scheduler.wrap(owner, name, wrapper)


def _followed_request() -> FollowedRequest | None:
    return getattr(_THREAD, 'followed', None)


def _request(is_wanted: Callable[[], bool],
             refused: Callable[[FollowedRequest, str], None],
             tenant_reason: Callable[[ty.Any], str],
             method: Callable, manager, *args, **kwargs):
    has_journal = False
    try:
        has_journal = is_wanted()
    except Exception:
        LOG.exception('Requests without a valid host are not noted')
    if has_journal:
        _wrap_filters(manager)
    # RPC passes all by name.
    followed = FollowedRequest(
        kwargs.get('spec_obj'), kwargs.get('instance_uuids'))
    # Put back below: worker threads of oslo.messaging are used again.
    before, _THREAD.followed = _followed_request(), followed
    try:
        return method(manager, *args, **kwargs)
    except Exception as exc:
        if has_journal:
            _note_refusal(refused, followed, exc)
        _set_reason(tenant_reason, kwargs.get('spec_obj'), exc)
        raise
    finally:
        _THREAD.followed = before


def _note_refusal(refused: Callable[[FollowedRequest, str], None],
                  followed: FollowedRequest, exc: Exception) -> None:
    # oslo.messaging hides the exceptions that clients are to get.
    error = getattr(exc, 'exc_info', (None, exc))[1]
    # NOTE: For pinned servers Nova asks twice since commit 278ab01c32
    # (Nova 20), and fails with TypeError if the second answer is an error. No
    # bug is known for it.
    if followed.spec_obj is None or followed.answered and not isinstance(
            error, exception.NoValidHost):
        return
    try:
        refused(followed, str(
            getattr(error, 'kwargs', {}).get('reason') or ''))
    except Exception:
        LOG.exception('Why there is no valid host cannot be noted')


def _set_reason(tenant_reason: Callable[[ty.Any], str], spec_obj,
                exc: Exception) -> None:
    # oslo.messaging sends what ``ExpectedException.exc_info`` has.
    kind, error, traceback = getattr(exc, 'exc_info', (None, None, None))
    if spec_obj is None or not isinstance(error, exception.NoValidHost):
        return
    try:
        if reason := tenant_reason(spec_obj):
            exc.exc_info = (
                kind, exception.NoValidHost(reason=reason), traceback)
    except Exception:
        LOG.exception('Why there is no valid host cannot be told')


def _query(answered: Callable[[ty.Any, ty.Any], None], method: Callable,
           *args, **kwargs):
    answer = method(*args, **kwargs)
    if (followed := _followed_request()) is not None:
        try:
            followed.queried(kwargs.get('resources', args[-1]), answer)
            if followed.spec_obj is not None:
                answered(followed.spec_obj, followed.summaries)
        except Exception:
            LOG.exception('What Placement was asked cannot be noted')
    return answer


def _wrap_filters(manager) -> None:
    for host_filter in getattr(
            getattr(manager, 'host_manager', None), 'enabled_filters', ()):
        # Objects of filters live as long as the process.
        name = type(host_filter).__name__
        try:
            scheduler.wrap(host_filter, 'filter_all',
                           functools.partial(_filter, name))
        except Exception:
            LOG.exception('What %s does cannot be noted', name)


def _filter(name: str, method: Callable, filter_obj_list, spec_obj):
    if (followed := _followed_request()) is None:
        return method(filter_obj_list, spec_obj)
    host_states = list(filter_obj_list)
    if (passing := method(host_states, spec_obj)) is not None:
        passing = list(passing)
        followed.ran(FilterRun(name, host_states, passing), spec_obj)
    return passing
