# SPDX-License-Identifier: Apache-2.0
"""Whatever happens, and whoever keeps the ledger, it comes out right.

Random sequences of what tenants and administrators do, with rounds of two
publishers in between that are cut into steps: each request to Placement, each
page of Neutron, and each reading of Nova's table of ports.  How many sequences
are tried comes from the environment, ``NFV_SCHED_LEDGER_SEQUENCES``.

What servers do while they come, go and move is also put between the steps of
one round in every way.

Placement is a model of it (:mod:`placement_model`), the cloud a few
dictionaries; the publishers and all that they use are the real ones.
"""

import collections
import contextlib
import itertools
import logging
import os
import queue
import random
import threading
import types

import fixtures
import requests

from nfv_sched.ledger import inventory as ledger_inventory
from nfv_sched.ledger import neutron
from nfv_sched.ledger import publisher
from nfv_sched.limits import names as ledger_names
from nfv_sched.nova import database
from nfv_sched.tests import base
from nfv_sched.tests.unit.limits import placement_model
from nfv_sched.tests.unit.limits import snapshots

SEQUENCES = int(os.environ.get('NFV_SCHED_LEDGER_SEQUENCES', '200'))
FIRST = int(os.environ.get('NFV_SCHED_LEDGER_FIRST_SEQUENCE', '0'))

HOSTS = ('host1', 'host2')
PHYSICAL = 1
ROUNDS = 2
# At most so many steps of a round are tried, a few more than most have.
STEPS = 10
# Rounds of the two publishers, in turn, after which all has to be right.
ENOUGH = 2 * (ROUNDS + ledger_inventory.ROUNDS + 1)
CLASSES = (ledger_names.PORTS, ledger_names.RULES)


class Guest:
    """A server.

    :ivar host: where it is, or is going to be
    :ivar source: where it comes from while it moves
    :ivar migration: UUID of the migration that has the allocation there
    :ivar ports: port -> [host that it is bound to, groups]
    :ivar plugging: port that is bound and that Nova has not noted yet; None
        if there is none
    :ivar built: whether it has been built
    :ivar reverted: whether it goes back to a host where it had perhaps
        claimed less than it has
    :ivar arrived: when it claimed what it needs where it is now
    """

    def __init__(self, host):
        self.host = host
        self.source = None
        self.migration = None
        self.ports = {}
        self.plugging = None
        self.built = False
        self.reverted = False
        self.arrived = 0

    def on(self, host):
        """The groups of its ports that are bound to a host, port by port."""
        return [groups for bound, groups in self.ports.values()
                if bound == host]

    def pending(self):
        return [port for port, (bound, _groups) in self.ports.items()
                if bound != self.host]

    def busy(self):
        """Whether its ports are being bound."""
        return bool(self.pending()) or self.plugging is not None


class World:
    """Nova and Neutron: what there is, and what can happen.

    :ivar placement: the model of Placement
    :ivar grown: host -> class -> [(moment, what came without a claim)]
    """

    def __init__(self, rng):
        self.rng = rng
        self.limits = {ledger_names.PORTS: rng.randint(5, 12),
                       ledger_names.RULES: rng.randint(15, 60)}
        self.placement = placement_model.Placement()
        self.placement.names.add('VCPU')
        for host in HOSTS:
            provider = placement_model.Provider(f'{host}-node', host, None)
            provider.inventories['VCPU'] = {
                'total': 1000, 'reserved': 0, 'min_unit': 1,
                'max_unit': 1000, 'step_size': 1, 'allocation_ratio': 1.0}
            self.placement.providers[provider.uuid] = provider
        self.guests = {}
        self.rules = {f'group{n}': rng.randint(1, 5) for n in range(3)}
        self.dhcp = dict.fromkeys(HOSTS, 0)
        self.numbers = itertools.count(1)
        self.clock = itertools.count(1)
        self.migrations = {}
        self.says = {}  # port -> server and owner that its project has set
        # Port -> [host, groups], of servers that are gone: Nova did not find
        # them by their device_id.
        self.orphans = {}
        # Port -> server, of ports that are gone and that Nova still has.
        self.unbound = {}
        self.moment = 0
        self.grown = {(host, name): [] for host in HOSTS for name in CLASSES}
        self.uncovered = {key: 0 for key in self.grown}
        self.seen = collections.Counter()
        self.note()

    # What the publishers read.

    def nodes(self):
        """See ``database.compute_nodes``."""
        return [database.ComputeNode(
            f'{host}-node', host, host, 'QEMU',
            types.SimpleNamespace(uuid='cell'), [], None)
            for host in HOSTS], []

    def read(self, pause=lambda: None):
        """What Neutron has, in two pages."""
        pages = []
        for even in (True, False):
            pause()
            pages += [port for port in self.bound()
                      if (ord(port['id'][-1]) % 2 == 0) is even]
        return snapshots.snapshot(pages, self.rules)

    def bound(self):
        ports = []
        for name, guest in self.guests.items():
            for port, (bound, groups) in guest.ports.items():
                instance, owner = self.says.get(port, (name, 'compute:nova'))
                ports.append({
                    'id': port, 'host': bound, 'instance': instance,
                    'owner': owner, 'groups': groups, 'project': 'p'})
        for port, (bound, groups) in self.orphans.items():
            instance, owner = self.says[port]
            ports.append({
                'id': port, 'host': bound, 'instance': instance,
                'owner': owner, 'groups': groups, 'project': 'p'})
        ports += [
            {'id': f'dhcp-{host}-{number}', 'host': host,
             'instance': f'dhcp-{host}', 'owner': 'network:dhcp'}
            for host, count in self.dhcp.items() for number in range(count)]
        return ports

    def plugged(self):
        """See ``records.plugged_servers``."""
        return {**self.unbound, **{
            port: name for name, guest in self.guests.items()
            for port, (bound, _groups) in guest.ports.items()
            if bound and port != guest.plugging}}

    # What is true.

    def amounts(self, ports):
        """Ports and rules of the ports with these groups."""
        return {ledger_names.PORTS: len(ports), ledger_names.RULES: sum(
            self.rules[group] for groups in ports for group in groups)}

    def held(self, consumer, host, name):
        found = self.placement.consumers.get(consumer)
        return 0 if found is None else found.allocations.get(
            ledger_names.provider_uuid(f'{host}-node'), {}).get(name, 0)

    def uncovered_on(self, host, name):
        """What is on a host, and nobody has allocated."""
        total = self.dhcp[host] + PHYSICAL if name == ledger_names.PORTS else 0
        for consumer, guest in self.guests.items():
            held = self.held(consumer, host, name) + (
                self.held(guest.migration, host, name)
                if guest.migration else 0)
            total += max(self.amounts(guest.on(host))[name] - held, 0)
        return total + self.amounts([
            groups for bound, groups in self.orphans.values()
            if bound == host])[name]

    def note(self):
        """Note what has come without a claim."""
        self.moment = next(self.clock)
        for key in self.grown:
            uncovered = self.uncovered_on(*key)
            if uncovered > self.uncovered[key]:
                self.grown[key].append(
                    (self.moment, uncovered - self.uncovered[key]))
            self.uncovered[key] = uncovered

    # What happens.

    def _guest(self, wanted):
        names = [name for name, guest in self.guests.items() if wanted(guest)]
        return self.rng.choice(names) if names else None

    def claim(self, consumer, host, ports, more_rules=0):
        """Claim what a guest needs on a host; whether it was granted."""
        amounts = self.amounts(ports)
        amounts[ledger_names.RULES] += more_rules
        uuid = ledger_names.provider_uuid(f'{host}-node')
        provider = self.placement.providers.get(uuid)
        if provider is None or ledger_names.TRAIT not in provider.traits:
            return False
        allocations = {f'{host}-node': {'resources': {'VCPU': 1}}}
        amounts = {name: amount for name, amount in amounts.items() if amount}
        if amounts:
            allocations[uuid] = {'resources': amounts}
        existing = self.placement.consumers.get(consumer)
        response = self.placement.claim(consumer, {
            'allocations': allocations, 'project_id': 'p', 'user_id': 'u',
            'consumer_generation': existing and existing.generation})
        self.seen[f'claim {response.status_code}'] += 1
        return response.status_code == 204

    def _groups(self):
        return tuple(self.rng.sample(sorted(self.rules),
                                     self.rng.choice((0, 1, 1, 2))))

    def create(self):
        """A server; it claims sometimes rules that its ports do not get."""
        name = f'vm{next(self.numbers)}'
        guest = Guest(self.rng.choice(HOSTS))
        ports = {f'{name}-{number}': ['', self._groups()]
                 for number in range(self.rng.randint(0, 4))}
        if self.claim(name, guest.host, [
                groups for _bound, groups in ports.values()],
                self.rng.choice((0, 0, 4))):
            guest.ports = ports
            guest.built = not ports
            self.guests[name] = guest

    def bind(self):
        """A port of a guest that is built or moved is bound.

        Nova notes a port when Neutron has answered, and binds no other before.
        """
        name = self._guest(lambda guest: guest.busy())
        if name is None:
            return
        guest = self.guests[name]
        if guest.plugging is not None:
            guest.plugging = None
        else:
            port = guest.pending()[0]
            before = self.uncovered_on(guest.host, ledger_names.PORTS)
            if not guest.ports[port][0]:
                self._plug(guest, port)
            guest.ports[port][0] = guest.host
            if not guest.reverted and before != self.uncovered_on(
                    guest.host, ledger_names.PORTS):
                raise AssertionError(f'the claim of {name} was not kept')
        guest.built = guest.built or not guest.busy()

    def _plug(self, guest, port):
        """Nova notes a new port of a server, at once or later."""
        if self.rng.random() < 0.5:
            guest.plugging = port
            self.seen['slow'] += 1

    def _attach(self, guest, port, groups):
        guest.ports[port] = [guest.host, groups]
        self._plug(guest, port)

    def _idle_guest(self):
        return self._guest(
            lambda guest: not guest.migration and not guest.busy())

    def attach(self):
        name = self._idle_guest()
        if name is not None:
            self._attach(self.guests[name], f'{name}-{next(self.numbers)}',
                         self._groups())

    def detach(self):
        """One is detached, or all of them."""
        name = self._idle_guest()
        if name is not None:
            guest = self.guests[name]
            for port in self.rng.choice(
                    (list(guest.ports), list(guest.ports)[:1])):
                del guest.ports[port]

    def reuse(self):
        """A port of a server, or of none, is attached to another one.

        And then named the first one's again.
        """
        name, other = self._idle_guest(), self._idle_guest()
        if other is None:
            return
        ports = self.rng.choice((self.guests[name].ports, self.orphans))
        if ports:
            port = self.rng.choice(sorted(ports))
            _bound, groups = ports.pop(port)
            self.says.pop(port, None)
            self._attach(self.guests[other], port, groups)
            if self.rng.random() < 0.5:
                self.says[port] = name, 'compute:nova'
            self.seen['reused'] += 1

    def remove(self):
        """A port of a server that is gone is removed."""
        if self.orphans:
            del self.orphans[self.rng.choice(sorted(self.orphans))]

    def regroup(self):
        name = self._guest(lambda guest: guest.ports)
        if name is not None:
            guest = self.guests[name]
            guest.ports[self.rng.choice(sorted(guest.ports))][1] = (
                self._groups())

    def rename(self):
        """A project sets whose a port is to be, or sets it right again."""
        name = self._guest(lambda guest: guest.ports)
        if name is not None:
            ports = self.rng.choice((
                sorted(self.guests[name].ports), sorted(self.orphans)))
            for port in self.rng.choice((ports, ports[:1])):
                self.says[port] = self.rng.choice((
                    (name, 'compute:nova'), ('nobody', 'compute:nova'),
                    (self.rng.choice(sorted(self.guests)), 'compute:nova'),
                    (name, ''), ('dhcp-x', 'network:dhcp')))
            self.seen['renamed'] += 1

    def rule(self):
        group = self.rng.choice(sorted(self.rules))
        self.rules[group] = max(
            self.rules[group] + self.rng.choice((-2, -1, 1, 2)), 1)

    def network(self):
        """A DHCP server comes or goes."""
        host = self.rng.choice(HOSTS)
        self.dhcp[host] = max(self.dhcp[host] + self.rng.choice((-1, 1)), 0)

    def move(self):
        """A server moves to another host, or is resized where it is."""
        name = self._idle_guest()
        if name is None:
            return
        guest = self.guests[name]
        host = self.rng.choice(HOSTS)
        migration = f'migration{next(self.numbers)}'
        self.placement.move(name, migration)
        self.migrations[migration] = name
        if not self.claim(name, host, [
                groups for _bound, groups in guest.ports.values()]):
            self.placement.move(migration, name)
            return
        self.seen['moves'] += 1
        guest.source, guest.host = guest.host, host
        guest.reverted = False
        guest.arrived = self.moment + 1
        guest.migration = migration

    def confirm(self):
        name = self._guest(lambda guest: guest.migration and not guest.busy())
        if name is not None:
            guest = self.guests[name]
            del self.placement.consumers[guest.migration]
            guest.source = guest.migration = None

    def revert(self):
        name = self._guest(lambda guest: guest.migration)
        if name is not None:
            guest = self.guests[name]
            self.placement.consumers.pop(name, None)
            self.placement.move(guest.migration, name)
            guest.host, guest.source, guest.migration = (
                guest.source, None, None)
            guest.reverted = True
            self.seen['reverts'] += 1

    def delete(self):
        name = self._guest(lambda guest: not guest.migration and (
            self.rng.random() < 0.3 or not self.says.keys().isdisjoint(
                guest.ports)))
        if name is not None:
            self.placement.consumers.pop(name, None)
            # Nova removes the ports that name the server.
            for port, (bound, groups) in self.guests.pop(name).ports.items():
                if bound and self.says.get(port, (name,))[0] != name:
                    self.orphans[port] = [bound, groups]
                    self.seen['orphans'] += 1

    EVENTS = ('create',) * 6 + ('bind',) * 12 + ('confirm',) * 3 + (
        'attach', 'detach', 'detach', 'regroup', 'rename', 'rule', 'network',
        'rename', 'reuse', 'remove', 'move', 'move', 'revert', 'delete',
        'delete')

    def happen(self):
        getattr(self, self.rng.choice(self.EVENTS))()
        self.note()

    def settle(self):
        """Let everything end that has begun."""
        while self._guest(lambda guest: guest.migration or guest.busy()):
            self.bind()
            self.confirm()
        self.note()


class Stop(threading.Event):
    """Never set; nobody waits for it, not even between two attempts."""

    def wait(self, timeout=None):
        return False


class Stepper:
    """A publisher whose rounds are done step by step, when it is told to.

    :ivar began: when the round began in which it is; None if in none
    :ivar read: when it read Neutron in that round; 0 if it has not yet
    """

    def __init__(self, number):
        self.number = number
        self.restart()
        self.began = None
        self.read = 0
        self.looked = set()  # hosts whose allocations it has read
        # How often others have written a host since this one knew it, and
        # since it read it last.
        self.others_wrote = collections.Counter()
        self.since_read = collections.Counter()
        self.asked = {}  # guest -> when it was said to be idle
        self.done = None
        self.error = None
        self._go = queue.SimpleQueue()
        self._paused = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ended = False
        self._thread.start()

    def restart(self):
        """Begin anew, between two rounds, without any memory."""
        self.publisher = publisher.Publisher(publisher.CONF, Stop())

    def _run(self):
        while True:
            self._go.get()
            if self._ended:
                return
            try:
                self.done = self.publisher.round()
            except Exception as exc:
                self.error = exc
            self.began = None
            self._paused.put(None)

    def pause(self):
        """Wait for being told to go on; for the publisher's threads."""
        self._paused.put(None)
        self._go.get()

    def step(self, moment):
        """Begin a round, or go on with it up to the next step."""
        if self.began is None:
            self.began = moment
            self.read = 0
            self.looked = set()
        self._go.put(None)
        self._paused.get()
        if self.error is not None:
            raise self.error

    def end(self):
        """Let the thread end, after the round in which it is."""
        self._ended = True
        self._go.put(None)
        self._thread.join()


class Run:
    """One sequence.

    :ivar known: (host, class) -> as of when what is published is known
    """

    def __init__(self, test, seed, steppers=2, world=World):
        self.rng = random.Random(seed)
        self.world = world(self.rng)
        self.test = test
        self.hosts = {ledger_names.provider_uuid(f'{host}-node'): host
                      for host in HOSTS}
        self.written = dict.fromkeys(HOSTS, 0)
        self.confirmed = dict.fromkeys(HOSTS, 0)
        self.acting = None
        self.world.placement.before = self._before
        self.world.placement.after = self._after
        self.steppers = [Stepper(number) for number in range(steppers)]
        self.plugging = {}  # port -> host, when the table was read last
        self.fails = False  # whether Neutron shows no single ports

    # Called by the publishers.

    def connect(self, conf):
        """See ``client.connect``."""
        return types.SimpleNamespace(
            request=self.world.placement.request,
            session=types.SimpleNamespace(
                request=None, timeout=None, session=requests.Session()))

    def reader(self, conf, stopped):
        """See ``neutron.Reader``."""
        def read(previous):
            def pause():
                self.acting.pause()
                self.acting.read = self.acting.read or self.world.moment

            return self.world.read(pause)

        def hosts_of(ports):
            self.acting.pause()
            if self.fails:
                raise neutron.NeutronError('it does not answer')
            self.world.seen['read again'] += 1
            return {port['id']: port['host'] for port in self.world.bound()
                    if port['id'] in ports}

        return types.SimpleNamespace(
            read=read, hosts_of=hosts_of, close=lambda: None)

    def plugged(self):
        """See ``records.plugged_servers``."""
        self.acting.pause()
        self.plugging = {
            guest.plugging: guest.host for guest in self.world.guests.values()
            if guest.plugging is not None}
        return self.world.plugged(), {}

    def moving(self, cell, consumer):
        """See ``database.moving_instance``."""
        return self.world.migrations.get(consumer)

    def idle(self, cell, instance):
        """See ``database.is_idle``."""
        self.acting.asked[instance] = self.world.moment
        guest = self.world.guests.get(instance)
        return guest is None or not guest.pending() and guest.built

    def _before(self, method, path):
        self.acting.pause()

    def _after(self, method, path, response):
        parts = path.split('/')
        if method == 'PUT' and path.startswith('/allocations') and (
                response.status_code == 204):
            self._lowered(parts[-1])
        if parts[-1] not in ('allocations', 'inventories') or (
                response.status_code != 200):
            return
        host = self.hosts[parts[-2]]
        actor = self.acting
        if method == 'GET' and parts[-1] == 'allocations':
            actor.looked.add(host)
            actor.since_read[host] = 0
        elif method == 'PUT':
            self.world.seen['written'] += 1
            if actor.others_wrote[host] > 1 and actor.read < (
                    self.written[host]):
                # What others wrote may have cancelled out meanwhile.
                self.world.seen['not noticed'] += 1
                self.written[host] = actor.read
            else:
                self.written[host] = max(self.written[host], actor.read)
            self.confirmed[host] = 0
            for other in self.steppers:
                if other is not actor:
                    other.others_wrote[host] += 1
                    other.since_read[host] += 1

    def _lowered(self, name):
        """A guest has given something back."""
        world = self.world
        world.seen['given back'] += 1
        guest = world.guests.get(name)
        if guest is not None and guest.arrived > self.acting.asked[name]:
            # It has moved away and back between two requests, and the
            # generation of a consumer begins anew when it does.
            world.seen['came back'] += 1
            guest.reverted = True
        world.note()

    # Called by the test.

    def step(self, stepper):
        self.acting = stepper
        stepper.step(self.world.moment)
        self.acting = None
        self.world.note()
        if stepper.began is not None:
            return
        self.test.assertFalse(stepper.done.failed, stepper.done)
        for report in stepper.done.hosts:
            self.world.seen[report.action.value] += 1
            if report.host in stepper.looked:
                stepper.others_wrote[report.host] = (
                    stepper.since_read[report.host])
                # What others have written since it looked it does not know.
                if not stepper.since_read[report.host]:
                    self.confirmed[report.host] = max(
                        self.confirmed[report.host], stepper.read)

    def round(self, stepper):
        """Let a publisher end the round in which it is, or do one."""
        self.step(stepper)
        while stepper.began is not None:
            self.step(stepper)

    def end(self, stepper):
        self.acting = stepper
        while stepper.began is not None:
            with contextlib.suppress(Exception):
                stepper.step(0)
        stepper.end()

    def check(self):
        """Nobody is let in for whom there is no room.

        But for what has come without a claim since Neutron was read by the
        one who knows most of what is published.
        """
        for (host, name), grown in self.world.grown.items():
            inventory = self.inventory(host, name)
            if inventory is None:
                continue
            known = max(self.written[host], self.confirmed[host])
            recent = sum(amount for moment, amount in grown if moment > known)
            room = inventory['total'] - inventory['reserved']
            self.test.assertLessEqual(
                room, max(self.world.limits[name] + recent
                          - self.world.uncovered_on(host, name), 0),
                (host, name, inventory))

    def inventory(self, host, name):
        provider = self.world.placement.providers.get(
            ledger_names.provider_uuid(f'{host}-node'))
        return provider and provider.inventories.get(name)

    def check_end(self):
        """What is allocated and reserved is what Neutron has."""
        world = self.world
        for host, name in world.grown:
            used = world.placement.used(
                ledger_names.provider_uuid(f'{host}-node'), name)
            uncovered = world.uncovered_on(host, name)
            limit = world.limits[name]
            inventory = self.inventory(host, name)
            self.test.assertEqual(max(limit, used), inventory['total'])
            self.test.assertEqual(
                max(limit - uncovered, 0),
                inventory['total'] - inventory['reserved'], (host, name))
            there = uncovered
            for consumer, guest in world.guests.items():
                has = world.amounts(guest.on(host))[name]
                held = world.held(consumer, host, name)
                if guest.ports:
                    self.test.assertLessEqual(held, has, (consumer, name))
                elif held:
                    # Detached before anybody saw them.
                    world.seen['never seen'] += 1
                there += min(has, held) if guest.ports else held
            self.test.assertEqual(there, used + uncovered, (host, name))


class PublisherTestCase(base.TestCase):
    """Publishers whose world is ``self.sequence``."""

    def setUp(self):
        super().setUp()
        self.flags(ledger_threads=1)
        # What is given back, in each of the sequences.
        logging.getLogger('nfv_sched').setLevel(logging.WARNING)
        for name, value in (
            # What is released silently is found after so many rounds.
            ('nfv_sched.ledger.publisher.ROUNDS', ROUNDS),
            ('nfv_sched.ledger.client.connect',
             lambda conf: self.sequence.connect(conf)),
            ('nfv_sched.ledger.neutron.Reader',
             lambda conf, stopped, doubts: self.sequence.reader(
                 conf, stopped)),
            ('nfv_sched.nova.database.compute_nodes',
             lambda: self.sequence.world.nodes()),
            ('nfv_sched.nova.database.moving_instance',
             lambda cell, consumer: self.sequence.moving(cell, consumer)),
            ('nfv_sched.nova.records.plugged_servers',
             lambda ports: self.sequence.plugged()),
            ('nfv_sched.nova.database.is_idle',
             lambda cell, consumer: self.sequence.idle(cell, consumer)),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, value))


class SequencesTestCase(PublisherTestCase):

    def try_one(self, seed):
        """Do one sequence; returns what was met in it."""
        random.seed(seed)  # for what the publishers leave to chance
        run = self.sequence = self.make_run(seed)
        world, rng = run.world, run.rng
        with contextlib.ExitStack() as ends:
            for stepper in run.steppers:
                ends.callback(run.end, stepper)
            busy = rng.random()
            for _ in range(rng.randint(20, 150)):
                if rng.random() < busy:
                    world.happen()
                else:
                    self.turn(rng.choice(run.steppers))
                run.check()
            world.settle()
            for number in range(ENOUGH):
                run.round(run.steppers[number % 2])
                run.check()
            self.check_end()
        return world.seen

    def try_all(self, seeds, *met):
        """Do many sequences, of which some meet each of these."""
        seen = collections.Counter()
        for seed in seeds:
            try:
                seen += self.try_one(seed)
            except Exception as exc:
                raise AssertionError(f'sequence {seed}: {exc}') from exc
        # Otherwise the sequences have become too tame to show anything.
        for what in met:
            self.assertGreater(seen[what], len(seeds) // 10, (what, seen))


class SequencesTest(SequencesTestCase):
    """Two publishers, and everything at once."""

    def make_run(self, seed):
        run = Run(self, seed)
        limits = run.world.limits
        self.flags(vswitch_ports_per_node=limits[ledger_names.PORTS],
                   vswitch_physical_ports=PHYSICAL,
                   security_rules_per_node=limits[ledger_names.RULES])
        return run

    def turn(self, stepper):
        """Do steps that follow on each other: rounds that end, too."""
        run = self.sequence
        if stepper.began is None and run.rng.random() < 0.1:
            stepper.restart()
        for _ in range(run.rng.choice((1, 1, 3, 8))):
            run.step(stepper)
            run.check()

    def check_end(self):
        self.sequence.check_end()

    def test_sequences(self):
        self.try_all(
            range(FIRST, FIRST + SEQUENCES), 'claim 204', 'claim 409', 'moves',
            'reverts', 'renamed', 'reused', 'slow', 'orphans', 'given back',
            'written', 'created', 'changed', 'unchanged', 'later',
            'read again')


class Round:
    """One round of a publisher, with events of a list between its steps.

    :param before: for each event the step before which it happens
    :ivar most: (host, class) -> most that was there without an allocation
    :ivar carried: (host, class) -> most that was allocated, or there without
        an allocation
    """

    others_wrote = since_read = collections.Counter()

    def __init__(self, run, events=(), before=()):
        self.run = run
        self.read = self.steps = 0
        self.looked, self.asked = set(), {}
        self.events = sorted(zip(before, events), key=lambda pair: pair[0])
        self.most, self.carried = collections.Counter(), collections.Counter()
        run.acting = self
        self._note()

    def do(self, made):
        """Do the round, and what has not happened in it."""
        self.done = made.round()
        self.pause(last=True)
        self.run.test.assertFalse(self.done.failed, self.done)

    def pause(self, last=False):
        """Let happen what happens before the next step."""
        self.run.check()
        while self.events and (last or self.events[0][0] <= self.steps):
            self.events.pop(0)[1]()
            self._note()
            self.run.check()
        self.steps += 1

    def _note(self):
        world = self.run.world
        world.note()
        for key, uncovered in world.uncovered.items():
            host, name = key
            self.most[key] = max(self.most[key], uncovered)
            self.carried[key] = max(
                self.carried[key], uncovered + world.placement.used(
                    ledger_names.provider_uuid(f'{host}-node'), name))


class InterleavingsTest(PublisherTestCase):
    """One publisher, and servers that come and go between any two steps.

    Each host has room for one server with two ports.
    """

    def setUp(self):
        super().setUp()
        self.flags(vswitch_ports_per_node=PHYSICAL + 2,
                   vswitch_physical_ports=PHYSICAL,
                   security_rules_per_node=2)

    def claim(self, name, host):
        self.world.guests[name] = Guest(host)
        self.assertTrue(self.world.claim(
            name, host, [('group0',), ('group0',)]), name)

    def bind(self, name, port, noted=True):
        """A port is bound; Nova notes it at once or later."""
        guest = self.world.guests[name]
        guest.ports[f'{name}-{port}'] = [guest.host, ('group0',)]
        guest.plugging = None if noted else f'{name}-{port}'

    def unplug(self, name, *ports):
        """Ports of a server are removed; Nova still has noted them."""
        for port in ports:
            del self.world.guests[name].ports[f'{name}-{port}']
            self.world.unbound[f'{name}-{port}'] = name

    def release(self, name):
        self.world.placement.consumers.pop(name)
        del self.world.guests[name]

    def begin(self, host):
        """The server begins to move."""
        self.world.placement.move('vm', 'migration')
        self.world.migrations['migration'] = 'vm'
        guest = self.world.guests['vm']
        guest.migration, guest.source = 'migration', guest.host
        guest.host = host
        self.assertTrue(self.world.claim(
            'vm', host, [('group0',), ('group0',)]))

    def end(self):
        """Its move ends."""
        self.world.guests['vm'].migration = None
        del self.world.placement.consumers['migration']

    def turn_back(self):
        """Its move is undone, up to its ports."""
        guest = self.world.guests['vm']
        del self.world.placement.consumers['vm']
        self.world.placement.move('migration', 'vm')
        guest.host, guest.migration = guest.source, None

    def rebind(self):
        """All ports of the server are bound to where it is going."""
        for port in 0, 1:
            self.bind('vm', port)

    def forget(self):
        """Nova deletes what it noted of the ports that are gone."""
        self.world.unbound.clear()

    def scenarios(self):
        """What happens, one after the other, by what it comes to.

        Nova unbinds the ports of a server that leaves, deletes what it has
        noted, and the allocation last.
        """
        def arrive(host, noted):
            self.claim('new', host)
            self.bind('new', 0, noted)

        def leave():
            self.unplug('vm', 0, 1)
            self.forget()
            self.release('vm')

        return {
            'leave': (lambda: self.unplug('vm', 0, 1), self.forget,
                      lambda: self.release('vm')),
            'arrive': (lambda: arrive('host2', False),
                       lambda: self.bind('new', 0),
                       lambda: self.bind('new', 1)),
            'arrive and leave': (
                lambda: arrive('host2', False),
                lambda: self.bind('new', 0),
                lambda: (self.unplug('new', 0), self.forget()),
                lambda: self.release('new')),
            # The server that leaves has made room for the other.
            'recreate': (leave, lambda: self.claim('new', 'host1'),
                         lambda: self.bind('new', 0)),
            'move': (lambda: self.begin('host2'), self.rebind, self.end),
            'replace': (lambda: (self.begin('host2'), self.rebind()),
                        self.end, lambda: arrive('host1', True)),
            'revert': (lambda: (self.begin('host2'), self.rebind()),
                       self.turn_back, self.rebind),
            'attach and detach': (
                lambda: self.bind('vm', 2), lambda: self.unplug('vm', 2),
                self.forget)}

    def prepare(self, remembers):
        """Begin a run; returns a publisher that has done a round or not."""
        random.seed(0)
        run = self.sequence = Run(self, 0, steppers=0)
        self.world = run.world
        self.world.limits = {
            ledger_names.PORTS: PHYSICAL + 2, ledger_names.RULES: 2}
        self.world.rules = {'group0': 1}
        made = publisher.Publisher(publisher.CONF, Stop())
        Round(run).do(made)
        self.claim('vm', 'host1')
        self.rebind()
        Round(run).do(made)
        return made if remembers else publisher.Publisher(
            publisher.CONF, Stop())

    def try_one(self, name, before, remembers):
        """Let the events of a scenario happen before these steps."""
        made = self.prepare(remembers)
        run = self.sequence
        done = Round(run, self.scenarios()[name], before)
        done.do(made)
        for report in done.done.hosts:
            for resource_class, account in report.accounts.items():
                key = report.host, resource_class
                limit = self.world.limits[resource_class]
                # What Nova was plugging when its table was read last counts
                # twice; each port has one rule.
                slow = list(run.plugging.values()).count(report.host)
                inventory = run.inventory(*key)
                # Nothing is reserved that was not there without an
                # allocation, nor said to be too much that was not.
                self.assertGreaterEqual(
                    inventory['total'] - inventory['reserved'],
                    max(limit - done.most[key] - slow, 0), key)
                self.assertLessEqual(
                    account.allocated + account.unallocated,
                    max(done.carried[key] + slow, limit), key)
        self.check_next(made)

    def check_next(self, made):
        """The next round sees everything."""
        for guest in self.world.guests.values():
            guest.plugging = None
        Round(self.sequence).do(made)
        for (host, name), uncovered in self.world.uncovered.items():
            inventory = self.sequence.inventory(host, name)
            self.assertEqual(
                max(self.world.limits[name] - uncovered, 0),
                inventory['total'] - inventory['reserved'], (host, name))

    def test_interleavings(self):
        self.prepare(True)
        for name, events in self.scenarios().items():
            for remembers, before in itertools.product(
                    (True, False), itertools.combinations_with_replacement(
                        range(STEPS), len(events))):
                try:
                    self.try_one(name, before, remembers)
                except Exception as exc:
                    raise AssertionError(
                        f'{name} {before} {remembers}: {exc}') from exc

    def test_neutron_fails_in_between(self):
        """Nothing is published of a host whose ports may be leaving."""
        made = self.prepare(True)
        before = self.sequence.inventory('host1', ledger_names.PORTS)
        self.unplug('vm', 1)
        done = Round(self.sequence, [
            lambda: self.unplug('vm', 0), self.forget,
            lambda: self.release('vm')], [4, 4, 4])
        self.sequence.fails = True
        self.assertRaises(publisher.RoundError, done.do, made)
        self.assertEqual(
            before, self.sequence.inventory('host1', ledger_names.PORTS))
        self.sequence.fails = False
        self.check_next(made)
