# SPDX-License-Identifier: Apache-2.0
"""Test whether Placement grants too much when many claims come at once.

The limits in the ledger hold only if it does not, which depends on how
Placement is configured.  A probe creates a resource provider, has invented
consumers claim from it at the same moment, and removes everything again.  The
provider belongs to no compute node and has a resource class of its own, so
Nova never uses it.
"""

from collections.abc import Iterable
from concurrent import futures
import contextlib
import enum
import random
import threading
import time
import typing as ty
import uuid

from nfv_sched.ledger import client
from nfv_sched.ledger import inventory

PREFIX = 'nfv-sched-probe-'
#: Resource class, and trait by which leftovers of other probes are found.
NAME = 'CUSTOM_NFV_PROBE'

# Seconds after which a probe gives up, and after which other probes remove its
# leftovers.
_LONGEST = 300.0
_DEAD = 600.0
# Number of retries after a conflict, and the longest pause before the first
# retry, in seconds; it grows with each retry. Nova retries less often, with
# longer pauses.
_ATTEMPTS = 100
_PAUSE = 0.02


class ProbeError(Exception):
    """The probe could not be completed."""


class ClaimAnswer(enum.Enum):
    GRANTED = 'granted'
    CONFLICT = 'conflict'
    REFUSED = 'refused'


class Burst(ty.NamedTuple):
    granted: int  #: number of claims granted at the first attempt
    #: number of claims whose first attempt conflicted with another claim
    conflicts: int
    #: number of claims refused at the first attempt because the inventory was
    #: used up
    refused: int
    #: amount allocated in the end, after claims with a conflict were repeated
    total: int


class _Client(client.Client):
    def begin(self, provider: str, capacity: int) -> None:
        for path in f'/resource_classes/{NAME}', f'/traits/{NAME}':
            self._request('PUT', path)
        self._request('POST', '/resource_providers', {
            'uuid': provider,
            'name': f'{PREFIX}{int(time.time())}-{provider[:8]}'})
        generation = self._set_traits(provider, 0, [NAME])
        self.replace(provider, generation, {
            NAME: inventory.LedgerInventory(capacity, 0).to_placement()})

    def left_behind(self) -> list[str]:
        """Return the UUIDs of providers that dead probes have left."""
        if not self._exists(f'/traits/{NAME}'):
            return []
        return [provider.uuid for provider in self.members(
            f'?required={NAME}') if _is_dead(provider.name)]

    def claim(self, consumer: str, provider: str) -> ClaimAnswer:
        try:
            self._request('PUT', f'/allocations/{consumer}', {
                'allocations': {provider: {'resources': {NAME: 1}}},
                'consumer_generation': None,
                'project_id': PREFIX.rstrip('-'),
                'user_id': PREFIX.rstrip('-')}, version='1.36')
        except client.ConflictError as exc:
            if exc.code == 'placement.concurrent_update':
                return ClaimAnswer.CONFLICT
            return ClaimAnswer.REFUSED
        return ClaimAnswer.GRANTED

    def remove(self, provider: str) -> None:
        with contextlib.suppress(client.NotFoundError):
            self.release(self.held(provider)[1])
            self._request('DELETE', f'/resource_providers/{provider}')

    def release(self, consumers: Iterable[str]) -> None:
        for consumer in consumers:
            with contextlib.suppress(client.NotFoundError):
                self._request('DELETE', f'/allocations/{consumer}')

    def end(self) -> None:
        for path in f'/resource_classes/{NAME}', f'/traits/{NAME}':
            with contextlib.suppress(
                    client.NotFoundError, client.ConflictError,
                    client.InUseError):
                self._request('DELETE', path)


def _is_dead(name: str) -> bool:
    began = name.removeprefix(PREFIX).partition('-')[0]
    return name.startswith(PREFIX) and began.isdigit() and (
        time.time() - int(began) > _DEAD)


class Probe:
    """A probe: a context manager within which its provider exists.

    :param capacity: total of the inventory, so many claims can be granted
    :param claims: more than ``capacity``
    :raises client.PlacementError: if Placement refuses a request
    """

    def __init__(self, conf, capacity: int, claims: int):
        self._capacity = capacity
        self._claims = claims
        self._provider = str(uuid.uuid4())
        self._deadline = time.monotonic() + _LONGEST
        self._stopped = threading.Event()
        self._client = _Client(conf, claims)

    def __enter__(self) -> 'Probe':
        try:
            for provider in self._client.left_behind():
                self._client.remove(provider)
            self._client.begin(self._provider, self._capacity)
        except BaseException as exc:
            self.__exit__(type(exc), exc, exc.__traceback__)
            raise
        return self

    def __exit__(self, exc_type, *exc_info) -> None:
        # The first error is the one to report; the next probe removes
        # leftovers.
        errors = (client.PlacementError,) if exc_type else ()
        with contextlib.suppress(*errors), contextlib.closing(self._client):
            self._client.remove(self._provider)
            self._client.end()

    def burst(self) -> Burst:
        """Send all claims at once, then repeat those that met a conflict.

        :raises ProbeError: if that takes too long, or a claim meets too many
            conflicts
        :raises client.PlacementError: if Placement refuses another request
        """
        consumers = [str(uuid.uuid4()) for _ in range(self._claims)]
        start = threading.Barrier(len(consumers))
        with futures.ThreadPoolExecutor(len(consumers)) as pool:
            try:
                answers = list(pool.map(
                    lambda consumer: self._claim(consumer, start), consumers))
                list(pool.map(self._claim_again, (
                    consumer for consumer, answer in zip(consumers, answers)
                    if answer is ClaimAnswer.CONFLICT)))
            except BaseException:
                # Each thread ends after the request that it is waiting for.
                self._stopped.set()
                start.abort()
                raise
        total = self.granted()
        self._client.release(consumers)
        return Burst(answers.count(ClaimAnswer.GRANTED),
                     answers.count(ClaimAnswer.CONFLICT),
                     answers.count(ClaimAnswer.REFUSED), total)

    def _claim(self, consumer: str, start: threading.Barrier) -> ClaimAnswer:
        start.wait()
        return self._client.claim(consumer, self._provider)

    def _claim_again(self, consumer: str) -> None:
        for attempt in range(_ATTEMPTS):
            self._stopped.wait(random.uniform(0, _PAUSE * (attempt + 1)))
            if self._stopped.is_set():
                return
            if time.monotonic() > self._deadline:
                raise ProbeError('Placement takes too long')
            answer = self._client.claim(consumer, self._provider)
            if answer is not ClaimAnswer.CONFLICT:
                return
        raise ProbeError(f'a claim met {_ATTEMPTS} conflicts in a row')

    def granted(self) -> int:
        return sum(
            allocation.resources.get(NAME, 0) for allocation in
            self._client.held(self._provider)[1].values())
