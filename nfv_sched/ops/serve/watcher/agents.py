# SPDX-License-Identifier: Apache-2.0
"""The strategy ``nfv_agents``."""

from collections.abc import Mapping
import typing as ty

from keystoneauth1 import loading
from oslo_config import cfg
from oslo_log import log

from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.serve.watcher import base
from nfv_sched.ops.serve.watcher import goals

LOG = log.getLogger(__name__)
#: The group of watcher.conf with the account.
_GROUP = 'watcher_clients_auth'


class NFVAgents(base.NFVStrategy):
    """Spread DHCP servers and routers, as ``nfv-sched agent rebalance`` plans.

    Watcher has no action for agents of Neutron: each action is a ``nop`` with
    the commands that make a move.  If the configuration names neither a
    snapshot nor Nova's configuration, Neutron is read with Watcher's account.
    """

    NAME = 'nfv_agents'
    DISPLAY_NAME = 'Spread DHCP servers and routers over agents'
    GOAL = goals.AgentBalanceGoal.NAME

    PARAMETERS = {
        'kind': {
            'description': 'Only DHCP servers, or routers.',
            'type': 'string', 'enum': [snapshot.DHCP, snapshot.ROUTER]},
        'threshold': {
            'description': 'How much more one agent may carry than another.',
            'type': 'integer', 'minimum': 1, 'default': 3},
        'ports': {
            'description': 'Level ports of the virtual switch, not the number '
                           'of services.',
            'type': 'boolean', 'default': False}}

    def pre_execute(self) -> None:
        """Do nothing: Watcher has no model of agents; called by Watcher."""
        LOG.info('Initializing %s', self.get_display_name())

    def do_execute(self, audit: ty.Any = None) -> None:
        by_api = not (self.config.snapshot or self.config.nova_config_files)
        plan, document = self.plan(
            'agent', 'rebalance', *(('--api',) if by_api else ()),
            account=_account() if by_api else None)
        for clause in plan.left_undone:
            self.add_note(clause)
        for move, each in zip(plan.moves, document['moves']):
            self.add_note(
                f'{move.number}: Watcher does not move {move.kind} {move} '
                f'from {move.source} to {move.destination}, these commands '
                f'do: {" && ".join(each["commands"])}')
        before, after = [max((
            each[when]['most'] - each[when]['fewest']
            for each in document['plans']), default=0)
            for when in ('before', 'after')]
        self.solution.set_efficacy_indicators(
            imbalance_before=before, imbalance_after=after)


def _account() -> Mapping[str, str]:
    """Return the account of Watcher as OS_* variables.

    :raises cfg.Error: if an option of it is not valid
    :raises keystoneauth1.exceptions.MissingAuthPlugin: if there is none
    """
    # Registers the options of the plugin.
    loading.load_auth_from_conf_options(cfg.CONF, _GROUP)
    session = cfg.CONF[_GROUP]
    group = cfg.CONF[session.auth_section or _GROUP]
    chosen = {'auth_type': group.auth_type, **{
        option.dest: group[option.dest]
        for option in loading.get_auth_plugin_conf_options(group.auth_type)}}
    chosen.update(cacert=session.cafile, cert=session.certfile,
                  key=session.keyfile, region_name=cfg.CONF.nova.region_name)
    if session.insecure:
        chosen['insecure'] = 'true'
    if cfg.CONF.nova.valid_interfaces:
        chosen['interface'] = cfg.CONF.nova.valid_interfaces[0]
    return {f'OS_{name.upper()}': str(value)
            for name, value in chosen.items() if value is not None}
