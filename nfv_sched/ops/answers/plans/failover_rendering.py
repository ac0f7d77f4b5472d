# SPDX-License-Identifier: Apache-2.0
"""Render what the loss of hosts does to servers, as text and rows."""

from collections.abc import Sequence
import typing as ty

from nfv_sched.ops.answers.plans import failover
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.cli import tables

COLUMNS = ('Host', 'Servers', 'Evacuable', 'Stranded')
#: Columns of :func:`records`.
RECORD_COLUMNS = ('Host', 'Server', 'Server ID', 'Flavor', 'Why')
_LEAST_IMPORTANT = ('Evacuable', 'Servers')


def text(losses: Sequence[failover.Loss],
         together: bool = False) -> list[tables.Part]:
    """Return the effect of losing one host, or all hosts together."""
    return [*_losses(losses, together), *(
        rendering.gap_text(each) for each in dict.fromkeys(
            each for loss in losses for each in loss.gaps))]


def _losses(losses: Sequence[failover.Loss],
            together: bool) -> list[tables.Part]:
    hosts = [loss for loss in losses if loss.stranded]
    guests = sum(loss.guests for loss in losses)
    template = 'If any one host of {} is lost' if not together else (
        'If {} are lost at once')
    condition = template.format(len(losses) if not together else tables.count(
        len(losses), 'host'))
    if not hosts:
        return [tables.Line(
            f'{condition}, all its servers find a place.' if not together
            else f'{condition}, their {guests} servers find a place.',
            tables.GOOD)]
    stranded = sum(len(loss.stranded) for loss in hosts)
    return [tables.Line(
        f'{condition}: {tables.count(stranded, "server")} of '
        f'{tables.count(len(hosts), "host")} '
        f'{"finds" if stranded == 1 else "find"} no place.', tables.BAD),
        '', tables.Table(COLUMNS, rows(losses), _LEAST_IMPORTANT)]


def rows(losses: Sequence[failover.Loss]) -> list[Sequence[ty.Any]]:
    """Return a row for each host of which servers find no other host."""
    return [(loss.host, loss.guests, loss.evacuable, tables.Lines([
        f'{guest.name} ({guest.flavor}): {_reason(guest)}'
        for guest in loss.stranded])) for loss in losses if loss.stranded]


def records(losses: Sequence[failover.Loss]) -> list[Sequence[ty.Any]]:
    """Return a row for each server that finds no host, for programs."""
    return [(loss.host, guest.name, guest.uuid, guest.flavor, _reason(guest))
            for loss in losses for guest in loss.stranded]


def _reason(guest: failover.Stranded) -> str:
    return (rendering.lacking_text(guest.lacking) if guest.reason is None
            else str(guest.reason))
