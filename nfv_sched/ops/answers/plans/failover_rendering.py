# SPDX-License-Identifier: Apache-2.0
"""Render what the loss of hosts does to servers, as text and rows."""

from collections.abc import Sequence
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.cli import tables

#: Columns of :func:`records`.
RECORD_COLUMNS = ('Host', 'Server', 'Server ID', 'Flavor', 'Why')


def text(effect: document.Failover) -> list[tables.Part]:
    return [*_losses(effect), *(
        rendering.gap_text(each) for each in dict.fromkeys(
            each for loss in effect.hosts for each in loss.unread))]


def _losses(effect: document.Failover) -> list[tables.Part]:
    hosts = [loss for loss in effect.hosts if loss.stranded]
    condition, whose = (
        f'If any one host of {len(effect.hosts)} is lost', 'all its')
    if effect.together:
        condition, whose = (
            f'If {strings.count(len(effect.hosts), "host")} are lost at once',
            f'their {sum(loss.servers for loss in effect.hosts)}')
    if not hosts:
        return [tables.Line(f'{condition}, {whose} servers find a place.',
                            tables.GOOD)]
    stranded = sum(len(loss.stranded) for loss in hosts)
    return [tables.Line(
        f'{condition}: {strings.count(stranded, "server")} of '
        f'{strings.count(len(hosts), "host")} '
        f'{"finds" if stranded == 1 else "find"} no place.', tables.BAD),
        '', table(effect)]


def table(effect: document.Failover) -> tables.Table:
    return tables.Table(
        ('Host', 'Servers', 'Evacuable', 'Stranded'),
        [(loss.host, loss.servers, loss.evacuable, tables.Lines([
            f'{each.server} ({each.flavor}): {rendering.why(each)}'
            for each in loss.stranded]))
            for loss in effect.hosts if loss.stranded],
        ('Evacuable', 'Servers'))


def records(effect: document.Failover) -> list[Sequence[ty.Any]]:
    return [(loss.host, each.server, each.server_id, each.flavor,
             rendering.why(each))
            for loss in effect.hosts for each in loss.stranded]
