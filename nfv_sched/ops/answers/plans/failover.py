# SPDX-License-Identifier: Apache-2.0
"""Find the servers that no other host takes when a host is lost.

The servers of a lost host are evacuated one after the other, in the order in
which the API lists them: the newest first.  Each goes where the scheduler puts
it, and hosts change only by the servers that came before.  So a server surely
finds a host if more hosts take it, as they are, than servers before it can
fill; and surely none if no host takes it.  Cases between these are decided in
the simulator.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import itertools

from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import gap
from nfv_sched.ops.answers.plans import refusals
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.simulator import moves
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start
from nfv_sched.ops.simulator import state as states

#: Nova's vm_states of servers that are not evacuated.
_AWAY = ('shelved', 'shelved_offloaded', 'soft-delete', 'deleted', 'building')
#: Policy of server groups -> filter that enforces it.
_KEEPERS = {'affinity': 'ServerGroupAffinityFilter',
            'anti-affinity': 'ServerGroupAntiAffinityFilter'}

Update = Callable[[int, int, str], None]


def check(cloud: snapshot.Cloud, hosts: Sequence[str], *,
          together: bool = False, at_once: int = 1,
          update: Update = lambda done, total,
          what: None) -> document.Failover:
    """Return the effect on servers if hosts, given by names, are lost.

    :param together: lose all of them at once; otherwise each ``at_once``
    :raises InputError: as :func:`drain.plan`
    """
    with start.started(cloud) as state:
        checking = FailoverAnalysis(cloud, state)
        losses: dict[str, document.LostHost] = {}
        sets = [hosts] if together else list(
            itertools.combinations(hosts, at_once))
        for index, lost in enumerate(sets):
            update(index, len(sets), 'losses of hosts')
            for loss in checking.losses(lost):
                before = losses.get(loss.host)
                if before is None or (
                        len(before.stranded) < len(loss.stranded)):
                    losses[loss.host] = loss if together else (
                        dataclasses.replace(loss, lost_with=tuple(
                            [name for name in lost if name != loss.host])))
        update(len(sets), len(sets), 'losses of hosts')
        return document.Failover(together=together, at_once=at_once,
                                 hosts=tuple(losses.values()))


def listed(servers: Sequence[snapshot.Server]) -> list[snapshot.Server]:
    """Return servers in the order of the API's list, the newest first.

    Simulated servers have no times; of them the last one is the newest.
    """
    # NOTE: Servers of one time are not in the order of ``id``: the list is
    # merged from the cells, for which nova.compute.instance_list sorts by
    # UUID, ascending.
    order = sorted(reversed(servers),
                   key=lambda server: server.uuid if server.created else '')
    # Without the last letter a time precedes those with a fraction.
    return sorted(order, reverse=True,
                  key=lambda server: server.created.removesuffix('Z'))


class FailoverAnalysis:
    """An analysis of lost hosts of one cloud; ``state`` is not changed."""

    def __init__(self, cloud: snapshot.Cloud, state: states.State):
        self._cloud = cloud
        self._positions = positions = arrangements.Positions(cloud, state)
        self._simulated: states.State | None = None
        #: Hosts with the most free CPUs first: soon enough are found.
        self._hosts = sorted(
            positions.hosts, key=positions.free_cpus, reverse=True)
        self._order = {server.uuid: place for place, server
                       in enumerate(listed(cloud.servers))}
        #: Hosts that take a server as they are, searched lazily.
        self._takers: dict[arrangements.Guest, Iterator[str]] = {}
        self._filters = frozenset(
            nova_scheduler.CONF.filter_scheduler.enabled_filters)

    def losses(self, lost: Sequence[str]) -> Iterator[document.LostHost]:
        positions = self._positions
        guests = sorted(
            (uuid for name in lost for uuid in positions.on_host[name]
             if positions.servers[uuid].state not in _AWAY),
            key=self._order.__getitem__)
        reasons = self._find_stranded(guests, frozenset(lost))
        for name in lost:
            own = [uuid for uuid in guests
                   if positions.servers[uuid].host == name]
            stranded = []
            for uuid in filter(reasons.__contains__, own):
                server, obstacle = positions.servers[uuid], reasons[uuid]
                stranded.append(document.StrandedServer(
                    server=server.name, server_id=uuid,
                    flavor=server.flavor.name,
                    flavor_id=server.flavor.id or None, obstacle=obstacle,
                    lacks=refusals.lacks(positions, uuid, frozenset(lost))
                    if obstacle is None else ()))
            yield document.LostHost(
                host=name, host_id=positions.of_name[name].uuid,
                servers=len(own), evacuable=len(own) - len(stranded),
                stranded=tuple(stranded),
                unread=gap.of_cloud(self._cloud, (name,)))

    def _find_stranded(
        self, guests: Iterable[str], lost: frozenset[str],
    ) -> dict[str, movable.MoveObstacle | None]:
        reasons: dict[str, movable.MoveObstacle | None] = {}
        going: list[str] = []
        unsure = 0
        for uuid in guests:
            obstacle = self._positions.why_not(movable.EVACUATE, uuid)
            finds = obstacle is None and self._finds_host(uuid, going, lost)
            if finds is False:
                reasons[uuid] = obstacle
                continue
            going.append(uuid)
            if finds is None:
                unsure = len(going)
        # All of those before the last unsure one, as each takes part of what
        # the next ones may need.
        return {**reasons, **self.tried(going[:unsure], lost)}

    # -- without the simulator

    def _finds_host(self, uuid: str, before: Sequence[str],
                    lost: frozenset[str]) -> bool | None:
        """Return whether a server finds a host after others; None: unsure."""
        takers = list(itertools.islice(
            self._that_take(uuid, lost), len(before) + 1))
        if not takers:
            # A server of a hint same_host may be evacuated first, and make the
            # host one that it can go to.
            return None if self._positions.hinted(
                arrangements.SAME_HOST, uuid) else False
        if not self._filters_foresee(uuid):
            return None
        if len(takers) > len(before):
            return True
        # No other hosts take it, and not all servers can go to these.
        before = [each for each in before if not set(takers).isdisjoint(
            self._that_take(each, lost))]
        return True if len(takers) > len(before) else None

    def _filters_foresee(self, uuid: str) -> bool:
        """Return whether filters foresee each failure of the claim."""
        counted = self._positions.guest(uuid).counted
        if counted.request.demands and (
                'PciPassthroughFilter' not in self._filters
                or not request.is_claimed_as_asked(
                    self._positions.simulated[uuid])):
            return False
        return counted.request.guest is None or (counted.guest_request.limited)

    def _that_take(self, uuid: str, lost: frozenset[str]) -> Iterator[str]:
        positions = self._positions
        guest = positions.guest(uuid)
        if guest not in self._takers:
            self._takers[guest] = (
                name for name in self._hosts if positions.in_cell(uuid, name)
                and positions.position(name).put(guest) is not None)
        # A copy: what is found is kept for others that are alike.
        self._takers[guest], takers = itertools.tee(self._takers[guest])
        keeper = _KEEPERS.get(positions.policy(uuid))
        for name in takers:
            if name not in lost and positions.in_cell(uuid, name) and (
                    positions.broken_hint(
                        arrangements.AS_IS, uuid, name) is None) and (
                    keeper not in self._filters or positions.together(
                        arrangements.AS_IS, uuid, name)):
                yield name

    # -- the simulator

    def tried(self, guests: Sequence[str],
              lost: frozenset[str]) -> Mapping[
                  str, movable.MoveObstacle | None]:
        """Evacuate servers in the simulator.

        :returns: UUID of each server that finds no host -> why; None if the
            scheduler finds no host
        """
        if not guests:
            return {}
        if self._simulated is None:
            self._simulated = start.restored(self._cloud)
        state = self._simulated
        of_uuid = {server.uuid: server for server in state.servers.values()}
        down = {name: state.hosts[name].down for name in lost}
        reasons: dict[str, movable.MoveObstacle | None] = {}
        evacuated = []
        # Nova refuses an evacuation from a host that is up.
        for name in lost:
            state.hosts[name].down = True
        for uuid in guests:
            server = of_uuid[uuid]
            before = server.host, server.claimed, server.status
            try:
                moves.evacuate(state, server, actions.MoveStep(
                    action='evacuate', number=1, targets=(server.name,)))
                evacuated.append((server, before))
            except servers.Refused as exc:
                # Claims that failed left notes.
                reasons[uuid] = movable.obstacle(
                    movable.ObstacleKind.REFUSED, str(exc)
                ) if state.notes else None
                state.notes = []
        if any(server.claimed.devices for server, _before in evacuated):
            # Freed devices may be assigned in another order next time.
            self._simulated = None
            return reasons
        # The other way round, so that each finds the state that it left.
        for server, before in reversed(evacuated):
            moves.undo_evacuation(state, server, *before)
        for name, was in down.items():
            state.hosts[name].down = was
        return reasons
