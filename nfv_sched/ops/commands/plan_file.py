# SPDX-License-Identifier: Apache-2.0
"""Write plans to files, and read the moves to be carried out from them."""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import hashlib
import typing as ty

from nfv_sched.base import files
from nfv_sched.base import strings
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.rebalance import document as rebalance_document
from nfv_sched.ops.cli import atomic_file
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.run import values

#: Document with moves -> the lists of its rows.
_PLANS: dict[type, tuple[str, ...]] = {
    document.Drain: ('servers',), document.Evacuation: ('servers',),
    document.Defrag: ('moves',), document.Rearrangement: ('moves',),
    rebalance_document.Rebalance: ('moves',),
    document.RollingDrain: ('rounds', 'not_emptied')}
#: Field of several values -> the option that is repeated.
_REPEATED = {'networks': 'network', 'servers': 'server'}
#: Kind of a lack: see :class:`document.CapacityLack`.
_FAILED = 'failed'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlan:
    path: str
    document: ty.Any
    plan: values.MovePlan
    digest: str

    @property
    def is_of_agents(self) -> bool:
        """Whether it moves DHCP servers and routers, not servers."""
        return isinstance(self.document, rebalance_document.Rebalance)


def document_of(plan: ty.Any) -> documents.Document:
    return documents.Document(plan, _PLANS[type(plan)])


def save(path: str, saved: documents.Document) -> SavedPlan:
    content = saved.text('json').encode()
    atomic_file.write(path, lambda file: file.write(content))
    return SavedPlan(path=path, document=saved.content,
                     plan=moves_of(saved.content), digest=digest(content))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def journal_of(path: str, plan_digest: str, round_number: int,
               ) -> tuple[str, str]:
    """Return the default journal of a plan or round, and the hash."""
    if not round_number:
        return f'{path}.journal', plan_digest
    # Moves of each round are numbered from 1.
    return (f'{path}.round-{round_number}.journal',
            f'{plan_digest}/{round_number}')


def moves_of(plan: ty.Any, round_number: int | None = None) -> values.MovePlan:
    """Return the moves of a plan, or of a round of it; None for the first.

    :raises ValueError: if there is no such round
    """
    fields: dict[str, ty.Any] = {}
    match plan:
        case rebalance_document.Rebalance():
            return _moves_of_rebalance(plan)
        case document.RollingDrain():
            return _moves_of_round(plan, round_number)
        case document.Drain():
            is_whole = plan.others is None
            fields['closed_hosts'] = (plan.host,) if is_whole else ()
            undone = _left_undone(plan)
            command = ('host', 'drain', *options_of({
                **dataclasses.asdict(plan.options),
                'servers': () if is_whole else to_leave(plan)}),
                '--', plan.host)
        case document.Evacuation():
            fields['staying'] = tuple([
                each.server_id for each in plan.servers if each.how is None])
            undone = tuple(_staying(plan.servers))
            command = ('host', 'evacuate', *options_of({
                'relax': plan.relax, 'avoid': plan.avoid}), '--', *plan.hosts)
        case document.Defrag():
            undone = (f'{plan.fits_after} more servers of {plan.flavor} fit, '
                      f'not {plan.wanted}',) * (not plan.enough)
            command = 'cloud', 'defrag', *options_of({
                'flavor': plan.flavor, 'count': plan.wanted,
                **dataclasses.asdict(plan.options)})
        case _:
            options = dataclasses.asdict(plan.options)
            is_even = options.pop('spread')
            undone = (
                'NUMA nodes are not even' if is_even else
                f'{strings.count(plan.after - plan.before, "host")} emptied, '
                f'not {plan.options.hosts}',) * (not plan.enough)
            command = ('cloud', 'spread' if is_even else 'consolidate',
                       *options_of(options))
    return values.MovePlan(
        moves=document.moves_of(plan), left_undone=undone, command=command,
        warnings=_warnings(plan.unread), **fields)


def read(path: str, round_number: int | None = None) -> SavedPlan:
    """Read a plan; of several rounds the given one, or with None the first."""
    with files.naming(path, errors.CloudUnreadError):
        content = files.read(path)
        parsed = parse(content)
        plan = moves_of(parsed, round_number)
        plan.check()
    return SavedPlan(path=path, document=parsed, plan=plan,
                     digest=digest(content))


def parse(content: bytes) -> ty.Any:
    """Return the plan of a JSON document, as its dataclass.

    :raises ValueError: if it is not a plan; FileLimitError is one
    :raises RecursionError: if it is nested too deeply
    """
    data = documents.parse(
        content, lambda data: _type_of(data) is not None, 'not a plan',
        ': the JSON document of host drain, host evacuate, cloud defrag, '
        'cloud spread, cloud consolidate or agent rebalance is needed')
    plan = codec.decode_document(ty.cast(type, _type_of(data)), data)
    moves_of(plan).check()
    return plan


def _type_of(data: dict[str, ty.Any]) -> type | None:
    # A plan has no field that says which it is.
    return next((root for root in _PLANS if all(
        each.name in data for each in dataclasses.fields(root)
        if each.default is dataclasses.MISSING)), None)


def options_of(values: Mapping[str, ty.Any]) -> Iterator[str]:
    """Yield options of a command; values may begin with a dash.

    :param values: name of each -> its value, or several; of a flag True; None
        or False without it
    """
    for name, value in values.items():
        option = f'--{_REPEATED.get(name, name).replace("_", "-")}'
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if each is True:
                yield option
            elif each is not None and each is not False:
                yield f'{option}={each}'


def to_leave(plan: document.Drain) -> list[str]:
    return [each.server_id for each in plan.servers
            if each.makes_room_for is None]


def _moves_of_round(plan: document.RollingDrain,
                    number: int | None) -> values.MovePlan:
    rounds = rounds_from(plan, number)
    this = rounds[0]
    number = this.round
    is_last = len(rounds) == 1
    remaining = (*[host for each in rounds for host in each.hosts],
                 *plan.not_emptied)
    return values.MovePlan(
        moves=document.moves_of(this),
        closed_hosts=tuple([each.host for each in this.hosts]),
        enabled_hosts=this.enabled, round=number,
        next_round=None if is_last else number + 1,
        given_up_hosts=this.given_up,
        left_undone=(
            *(f'{host} is not emptied in this round'
              for host in this.given_up if not is_last or all(
                  host != each.host for each in plan.not_emptied)),
            *(text for each in plan.not_emptied if is_last
              for text in (f'{each.host} is not emptied',
                           *_left_undone(each)))),
        warnings=_warnings(dict.fromkeys(
            unread for each in this.hosts for unread in each.unread)),
        command=('host', 'drain', f'--at-once={plan.at_once}',
                 *[option for each in remaining[:1] for option in options_of(
                     dataclasses.asdict(each.options))],
                 '--', *[each.host for each in remaining]))


def rounds_from(plan: document.RollingDrain,
                number: int | None) -> tuple[document.DrainRound, ...]:
    """Return a round, and those after it.

    :param number: None for all
    :raises ValueError: if there is no such round, rounds are not numbered in
        order, or at_once is less than 1
    """
    if plan.at_once < 1:
        raise ValueError('at_once is less than 1')
    # If no host can be emptied, the first says why.
    rounds = plan.rounds or (
        document.DrainRound(round=1, enabled=(), hosts=()),)
    first, last = rounds[0].round, rounds[-1].round
    numbers = [each.round for each in rounds]
    if first < 1 or numbers != list(range(first, first + len(rounds))):
        raise ValueError('rounds are not numbered one after the other')
    if number is None:
        number = first
    if number not in numbers:
        raise ValueError(f'there is no round {number}: the plan has '
                         + strings.count(len(plan.rounds), 'round') + (
                             f', {first} to {last}' if first > 1 else ''))
    return rounds[number - first:]


def _left_undone(plan: document.Drain) -> tuple[str, ...]:
    return (
        *_staying(plan.servers),
        *(f'{each.server} ({each.server_id}) also holds resources of '
          f'{plan.host}' for each in plan.unfinished))


def _staying(servers: Iterable[document.DrainServer]) -> Iterator[str]:
    for each in servers:
        if each.how is None:
            yield ''.join((
                f'{each.server} ({each.server_id}) stays on {each.source}',
                *(f'; its move to {lack.nearest} has failed: {lack.why}'
                  for lack in each.lacks if lack.kind == _FAILED)))


def _warnings(unread: Iterable[document.UnreadData]) -> tuple[str, ...]:
    return tuple([
        f'the plan may be wrong, it was made without {each.kind}'
        + (f' of {strings.some(each.names)}' if each.names else '')
        for each in unread])


def _moves_of_rebalance(plan: rebalance_document.Rebalance) -> values.MovePlan:
    return values.MovePlan(
        moves=tuple([values.Move(
            number=each.move, kind=each.kind, id=each.service_id,
            name=each.service or '', source=each.source,
            destination=each.destination, source_agent=each.source_agent_id,
            destination_agent=each.destination_agent_id)
            for each in plan.moves]),
        left_undone=tuple([
            f'{service.service or service.service_id} stays on {stay.host}'
            for each in plan.plans for stay in each.stays
            for service in stay.services]),
        command=('agent', 'rebalance', *options_of({
            'kind': kinds(plan) if len(kinds(plan)) == 1 else None,
            'threshold': plan.plans[0].threshold if plan.plans else None,
            'ports': any(each.levels == 'ports' for each in plan.plans)})))


def kinds(plan: rebalance_document.Rebalance) -> list[str]:
    return sorted({snapshot.ROUTER if each.kind == snapshot.OVN else each.kind
                   for each in plan.plans})
