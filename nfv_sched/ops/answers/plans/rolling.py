# SPDX-License-Identifier: Apache-2.0
"""Plan how to empty several hosts one after the other, as for an upgrade.

In each round some hosts are emptied onto others; then they come back, and may
take the servers of the next.  The host with the fewest servers comes first,
and servers go to hosts that were emptied, or are not to be, before others: so
few of them move more than once.
"""

from collections.abc import Collection, Iterator, Sequence
import dataclasses

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.cloud import changed_hosts
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.simulator import start

#: Time limit of the search for each host, in seconds.
SECONDS = 5.0


def plan(cloud: snapshot.Cloud, hosts: Sequence[str],
         options: document.DrainOptions = document.DrainOptions(), *,
         at_once: int = 1, begun: Collection[str] = (), first_round: int = 1,
         before: Sequence[str] = (), failed: drain.Failed = drain.NONE_FAILED,
         seconds: float = SECONDS, update: drain.Update = lambda done, total,
         what: None) -> document.RollingDrain:
    """Plan rounds in which hosts are emptied.

    A host of which a server cannot be moved is left as it is.

    :param begun: names of those hosts of which a round has begun, so that they
        are disabled: they are the first round, as far as they can be emptied,
        even if it has no host then; each is enabled after its round
    :param before: names of hosts of earlier rounds, which are enabled
    :raises InputError: as :func:`drain.plan`, whose are the others, too
    """
    with start.started(cloud) as state:
        rolling = _Rolling(
            cloud, arrangements.Positions(cloud, state, options=options),
            hosts, drain.DrainTerms(
                options, failed, seconds, lambda done, total, what: None),
            at_once, frozenset(begun))
        rounds = list(rolling.rounds(update))
        # A first round without hosts is for those that are disabled already
        # and cannot be emptied; not needed if the next one is theirs as well.
        if len(rounds) > 1 and not rounds[0] and rolling.returning.issuperset(
                [each.host for each in rounds[1]]):
            del rounds[0]
        enabled = rolling.returning.union(
            host.name for host in cloud.hosts if host.enabled)
        back = list(before)
        numbered = []
        for number, plans in enumerate(rounds, first_round):
            numbered.append(document.DrainRound(
                round=number, enabled=tuple(back), hosts=plans))
            back += [each.host for each in plans if each.host in enabled]
        return document.RollingDrain(
            at_once=at_once, rounds=tuple(numbered),
            not_emptied=tuple([rolling.staying(host)
                               for host in hosts if host in rolling.stuck]))


class _Rolling:
    """A cloud in which hosts are emptied in rounds.

    :ivar stuck: name of each host that cannot be emptied -> its plan
    :ivar returning: names of the hosts that are enabled once they are empty
    """

    def __init__(self, cloud: snapshot.Cloud,
                 positions: arrangements.Positions, hosts: Sequence[str],
                 terms: drain.DrainTerms, at_once: int, begun: frozenset[str]):
        self._cloud = cloud
        self._positions = positions
        self._hosts = hosts
        self._terms = terms
        self._at_once = at_once
        self._is_to_shelve = terms.options.shelve
        #: Whether nothing else has helped.
        self._is_shelving = False
        self.returning = begun
        #: Name of each host that is not done -> number of rounds for which
        #: it was considered in vain.
        self._waiting = dict.fromkeys(hosts, 0)
        self.stuck: dict[str, document.Drain] = {}

    def rounds(self, update: drain.Update) -> Iterator[
            tuple[document.Drain, ...]]:
        """Yield the plans of each round.

        Hosts that cannot be emptied are considered again when all others are
        done, as long as that helps.  Then the servers of one are shelved.
        """
        begun = [host for host in self._hosts if host in self.returning]
        if begun:
            # No other host is disabled at the same time, even if none of these
            # can be emptied.
            yield self._plans_of_round(self._empty_hosts(begun))
            self._waiting.update(dict.fromkeys(self._take_hosts_to_retry(), 1))
        while self._waiting:
            helped = False
            while self._waiting:
                update(len(self._hosts) - len(self._waiting),
                       len(self._hosts), 'hosts')
                if plans := self._plans_of_round(self._round()):
                    helped = True
                    yield plans
                    if self._is_shelving:
                        break
            if not helped and self._is_shelving == self._is_to_shelve:
                return
            self._is_shelving = not helped
            self._waiting = dict.fromkeys(
                (*self._waiting, *self._take_hosts_to_retry()), 0)

    def _take_hosts_to_retry(self) -> list[str]:
        hosts = [host for host, plan in self.stuck.items()
                 if not self._is_fixed(plan)]
        for host in hosts:
            del self.stuck[host]
        return hosts

    def _plans_of_round(
        self, plans: tuple[document.Drain, ...],
    ) -> tuple[document.Drain, ...]:
        emptied = {each.host for each in plans}
        for host in emptied:
            del self._waiting[host]
        if emptied & self.returning:
            self._set_cloud(changed_hosts.enabled(
                self._cloud, emptied & self.returning))
        return plans

    def _round(self) -> tuple[document.Drain, ...]:
        """Plan the next round, of the hosts with the fewest servers.

        Those that are disabled already come before others.

        :returns: nothing if the first host cannot be emptied: it is stuck
        """
        positions = self._positions
        waiting = sorted(self._waiting, key=lambda host: (
            self._waiting[host], host not in self.returning,
            len(positions.on_host[host])))
        # Of several, none would take the servers of another.
        hosts = waiting[:1 if self._is_shelving else self._at_once]
        plans = self._empty_hosts(hosts)
        if not plans and len(hosts) > 1 and hosts[0] in self._waiting:
            # The others have to take its servers.
            plans = self._empty_hosts(hosts[:1])
        return plans

    def _empty_hosts(self, hosts: Sequence[str]) -> tuple[document.Drain, ...]:
        plans = []
        options = self._terms.options
        terms = dataclasses.replace(self._terms, options=dataclasses.replace(
            options, shelve=self._is_shelving))
        for host in hosts:
            # Servers that go to a host which is emptied later have to move
            # twice.
            plan, after = drain.empty(
                self._cloud, self._positions, host, terms, closed=hosts,
                later={*self._waiting, *self.stuck}.difference(hosts))
            plan = dataclasses.replace(plan, options=options)
            if not (plan.staying or plan.unfinished):
                plans.append(drain.numbered(plan, 1 + sum(
                    len(each.servers) for each in plans)))
                if plan.moves:
                    self._set_cloud(after)
            elif len(hosts) == 1 or self._is_fixed(plan):
                self.stuck[host] = plan
                del self._waiting[host]
            else:
                self._waiting[host] += 1
        return tuple(plans)

    def _set_cloud(self, cloud: snapshot.Cloud) -> None:
        self._cloud = cloud
        # All that is known of hosts is of the cloud before these moves.
        self._positions = arrangements.Positions(
            cloud, start.restored(cloud), options=self._positions.options)

    def _is_fixed(self, plan: document.Drain) -> bool:
        """Return whether a host cannot be emptied, whatever others take."""
        return bool(plan.unfinished or any(
            server.obstacle and not (
                self._is_to_shelve and self._positions.why_not(
                    movable.SHELVE, server.server_id) is None)
            for server in plan.staying))

    def staying(self, host: str) -> document.Drain:
        plan = self.stuck[host]
        staying = plan.staying
        if self._is_to_shelve:
            staying = tuple([dataclasses.replace(
                server, not_shelved=self._positions.why_not(
                    movable.SHELVE, server.server_id)) for server in staying])
        return dataclasses.replace(
            plan, servers=staying, others=len(plan.servers) - len(staying))
