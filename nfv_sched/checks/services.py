# SPDX-License-Identifier: Apache-2.0
"""Check Neutron, Placement and the ledger."""

from collections.abc import Iterator
import contextlib

from oslo_upgradecheck import upgradecheck

from nfv_sched.base import strings
from nfv_sched.checks import findings
from nfv_sched.checks import scheduler
from nfv_sched.ledger import client as ledger_client
from nfv_sched.ledger import neutron as nfv_neutron
from nfv_sched.ledger import publisher

Action = publisher.Action

_PROBE = (
    'Placement grants no more than that when many servers come at once, if '
    'placement.conf has [placement] allocation_conflict_retry_count = 1: see '
    '"nfv-sched-status ledger probe".')


def neutron(conf) -> upgradecheck.Result:
    """Check that Neutron can be read, and shows all that is needed."""
    limits = scheduler.limits_network(conf)
    if not limits and not scheduler.weighs_network(conf):
        return findings.success(
            'Not needed: no limit of ports or rules is kept, and no weigher '
            'of network load is loaded.')
    try:
        with contextlib.closing(nfv_neutron.Reader(conf)) as reader:
            shown, hidden = reader.probe()
    except nfv_neutron.NeutronError as exc:
        return (findings.failure if limits else findings.warning)(
            'Neutron cannot be read with the section [neutron] of the '
            f"scheduler's nova.conf: {strings.brief(exc)}. nfv-sched-ledger "
            'publishes nothing new, and each port is taken to have as many '
            'rules as it may have.')
    if hidden and scheduler.RULES in conf.filter_scheduler.enabled_filters:
        return findings.failure(
            f'{hidden}. Limits of security-group rules are not kept.')
    return findings.success(shown)


def placement(conf) -> upgradecheck.Result:
    """Check that Placement answers a query for the providers of the ledger."""
    try:
        with contextlib.closing(ledger_client.Client(conf)) as client:
            published = client.providers()
    except ledger_client.PlacementError as exc:
        return findings.failure(
            'Placement cannot be read with the section [placement] of '
            'nova.conf, whose user needs the role admin or service: '
            f'{strings.brief(exc)}.')
    return findings.success(
        f'Placement answers. The ledger has {len(published)} resource '
        'providers there.')


def ledger(conf) -> upgradecheck.Result:
    """Compare the ledger with a dry run of what would be published now."""
    limits = scheduler.limits_network(conf)
    if not limits and not scheduler.weighs_network(conf):
        return findings.success(
            'Not in use: no limit of ports or rules is kept, and no weigher '
            'of network load is loaded.')
    try:
        with contextlib.closing(ledger_client.Client(conf)) as client:
            undefined = client.undefined()
        if undefined:
            return (findings.failure if limits else findings.warning)(
                f'Placement does not know {", ".join(undefined)}: '
                'nfv-sched-ledger has not done a round yet. Start it: limits '
                'of ports and rules are not kept, and hosts are not weighed '
                'by their network load.')
        with contextlib.closing(publisher.Publisher(conf)) as worker:
            round_report = worker.round(dry_run=True)
    except (ledger_client.PlacementError, publisher.RoundError) as exc:
        return findings.warning(
            'What is published could not be compared with what should be: '
            f'{strings.brief(exc)}.')
    hosts: dict[publisher.Action, list[str]] = {}
    for report in round_report.hosts:
        hosts.setdefault(report.action, []).append(report.host)
    problems = [findings.warning(
        f'Hosts of a cell were not looked at: {strings.brief(failure)}.')
        for failure in round_report.failures]
    problems += _unpublished_findings(conf, hosts, limits)
    problems += [findings.warning(
        f'{report.host}: {strings.brief(report.note)}.')
        for report in round_report.hosts if report.action is Action.FAILED]
    overdrawn = [f'{report.host} ({report.overdrawn})'
                 for report in round_report.hosts if report.overdrawn]
    if overdrawn:
        problems.append(findings.warning(
            f'More is allocated than there is: {strings.some(overdrawn)}. '
            'That is usual after a limit was lowered. Otherwise Placement '
            'grants too much: run "nfv-sched-status ledger probe".'))
    return findings.conclude(
        problems, f'{len(hosts.get(Action.UNCHANGED, ()))} hosts are '
        f'published and up to date. {_PROBE}')


def _unpublished_findings(conf, hosts: dict[publisher.Action, list[str]],
                          limits: bool) -> Iterator[findings.Finding]:
    """Yield findings about the hosts that a round would change.

    :param hosts: action -> names of the hosts for which it would be done
    """
    interval = conf.nfv_sched.ledger_publish_interval
    if new := hosts.get(Action.CREATED):
        present = hosts.get(Action.UNCHANGED) or hosts.get(Action.CHANGED)
        yield (findings.failure if limits and not present
               else findings.warning)(
            f'Not published: {strings.some(new)}. Limits of ports and rules '
            'are not kept there. See whether nfv-sched-ledger runs.')
    for action, text in {
        Action.CHANGED:
            'Published, but not as it should be: {}. That is usual for '
            f'{interval:g} s after a change. If it stays so, nfv-sched-ledger '
            'does not run, or reads other limits than this nova.conf has.',
        Action.REMOVED:
            'Left over: {}. nfv-sched-ledger removes them in its next round, '
            'if it runs.',
        Action.IN_USE:
            '{}: the compute node is gone, but servers still have '
            'allocations. See "openstack resource provider show '
            '--allocations". Delete the servers; what belongs to none goes '
            'with "openstack resource provider allocation delete".',
        Action.WAITING:
            '{}: no resource provider yet. See whether nova-compute runs '
            'there.'}.items():
        if hosts.get(action):
            yield findings.warning(text.format(strings.some(hosts[action])))
