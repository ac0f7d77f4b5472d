# SPDX-License-Identifier: Apache-2.0
"""Read the cloud and work out its metrics."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import copy
import logging
import os
import time
import typing as ty
import zlib

import prometheus_client
from prometheus_client import core
from prometheus_client import exposition
from prometheus_client import parser
from prometheus_client import registry

from nfv_sched.base import files
from nfv_sched.base import strings
from nfv_sched.journal import writer
from nfv_sched.ops.answers.journal import reading
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.cli import base
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import source
from nfv_sched.ops.serve.metrics import rendering
from nfv_sched.ops.simulator import progress

LOG = logging.getLogger(__name__)

#: Larger values are neither times, up to the year 9999, nor counts.
_LATEST = 253402300800
# What a file raises that cannot be read, or has no metrics.
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zlib.error)


class Collection:
    """A reader of the cloud that keeps its metrics.

    :param publish: gets each cloud that was read
    """

    def __init__(self, parsed_args: argparse.Namespace,
                 publish: Callable[[snapshot.Cloud], None] = lambda _cloud:
                 None):
        self._args = parsed_args
        self._publish = publish
        self._tally = reading.Tally()
        self._journal = parsed_args.journal
        self._read: Callable[[], snapshot.Cloud]
        self.collector = rendering.Collector(time.time)
        self.registry = prometheus_client.CollectorRegistry()
        self.registry.register(self.collector)
        self.late_failures: Callable = lambda: ({}, [])
        if parsed_args.source is not None:
            self._read = lambda: source.load(
                parsed_args.source, parsed_args.config_file)
        else:
            self._read = source.reader(base.configuration(parsed_args))
            from nfv_sched.nova import records
            self.late_failures = records.late_failures
            if ledger := source.option('ledger_metrics'):
                self.registry.register(_LedgerFile(ledger))
            if self._journal is None:
                self._journal = source.option('decision_journal')

    def render(self, accept: str) -> tuple[str, bytes]:
        """Return type and text of the metrics, for a header ``Accept``."""
        # The version in it becomes a part of the type. White space may have
        # line breaks, where a header goes on in the next line.
        accept = ' '.join(accept.split())
        try:
            encoder, content_type = exposition.choose_encoder(accept)
        except (TypeError, ValueError):  # of a version such as "x"
            encoder, content_type = exposition.choose_encoder('')
        return content_type, encoder(self.registry)

    def collect(self) -> list[str]:
        """Read the cloud and the journal again.

        :returns: what could not be read, a sentence each
        :raises CloudUnreadError: if the cloud cannot be read at all, or
            not be published
        :raises UsageError: if no flavor matches
        :raises InputError: if the cloud cannot be simulated
        """
        began = time.monotonic()
        missing = self._count_refusals()
        cloud = self._read()
        self._publish(cloud)
        try:
            late, unread = self.late_failures()
        except Exception as exc:  # of the API database
            late, unread = {}, [str(source.database_error(exc))]
        missing += [f'Late failures and retries are not known: {each}'
                    for each in unread]
        families = self._families(cloud, late)
        missing += map(str, cloud.missing)
        self.collector.collected = rendering.Collected(
            families, rendering.seconds(cloud.taken),
            time.monotonic() - began, len(missing))
        return missing

    def resume(self, path: str) -> None:
        """Continue the counters of a file, which may be missing."""
        tally = reading.Tally()
        try:
            for family in _families_in(path):
                for sample in family.samples:
                    if 0 <= sample.value < _LATEST:  # not NaN
                        self._resume_sample(tally, family.name, sample)
        except FileNotFoundError:
            return
        except _UNREADABLE as exc:
            LOG.warning('%s is replaced, and its counts are lost: %s',
                        path, strings.one_line(exc))
            return
        self._tally = tally

    def _resume_sample(self, tally: reading.Tally, name: str,
                       sample: ty.Any) -> None:
        labels, count = sample.labels, int(sample.value)
        # Rounding may have lost the last digits of a time.
        stamp = writer.stamp(sample.value + 0.0005)
        match name:
            case rendering.REFUSALS.name:
                tally.counts[labels['policy']] = count
            case rendering.LATEST_REFUSAL.name:
                tally.latest = stamp
            case rendering.SHADOW.name:
                tally.servers[labels['outcome']] = count
            case rendering.DECISIONS.name:
                tally.decisions[labels['name'], labels['outcome']] = count
            case rendering.LATEST_SHADOW.name:
                tally.latest_placed = stamp

    def begin(self) -> None:
        """Count refusals from now on: those already in the journal count 0.

        The counters of a new process have to start at 0.
        """
        with contextlib.suppress(reading.JournalError):
            if self._journal:
                before = reading.Tally()
                content = reading.read(self._journal)
                before.add(content.refusals, content.placed)
                self._tally = before.restarted()

    def _count_refusals(self) -> list[str]:
        if not self._journal:
            return []
        try:
            content = reading.read(
                self._journal, required=self._args.journal is not None)
        except reading.JournalError as exc:
            # That of the configuration is missing until a first refusal.
            return [] if self._args.journal is None and not os.path.exists(
                self._journal) else [
                f'The decision journal cannot be read: {exc}']
        tally = self._tally
        tally.add(content.refusals, content.placed)
        # A copy, as a scrape may read it meanwhile.
        self.collector.tally = copy.deepcopy(tally)
        return list(content.unread)

    def _families(self, cloud: snapshot.Cloud,
                  late: Mapping[tuple[str, str], int]) -> list[ty.Any]:
        # Importing Nova takes seconds, in which the listener is to answer.
        from nfv_sched.ops.answers.audit import all_checks
        from nfv_sched.ops.answers.audit import hosts
        from nfv_sched.ops.answers.hosts import view
        from nfv_sched.ops.answers.rebalance import levelling
        from nfv_sched.ops.model.counting import capacity
        flavors = arguments.flavors(
            [flavor for flavor in cloud.flavors if not flavor.disabled],
            self._args.flavors)
        with progress.shown() as update:
            counted = capacity.capacities(
                cloud, flavors,
                update=lambda done, total: update(done, total, 'flavors'))
        losses: Sequence[document.LostHost] = ()
        if self._args.failover:
            from nfv_sched.ops.answers.plans import failover
            with progress.shown() as update:
                losses = failover.check(cloud, list(dict.fromkeys(
                    host.name for host in cloud.hosts)), update=update).hosts
        return rendering.families(
            cloud, view.views(cloud), counted,
            late=late.items(),
            findings=(all_checks.findings(cloud) if hosts.names_unread(cloud)
                      else None),
            rebalance=levelling.plans(cloud, room=view.free_ports(cloud)),
            losses=losses)


class _LedgerFile(registry.Collector):
    def __init__(self, path: str):
        self._path = path

    def collect(self) -> Iterator[core.Metric]:
        with contextlib.suppress(*_UNREADABLE):
            yield from _families_in(self._path)


def _families_in(path: str) -> list[core.Metric]:
    return list(parser.text_string_to_metric_families(
        files.read(path).decode()))
