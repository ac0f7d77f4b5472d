# SPDX-License-Identifier: Apache-2.0
"""Agents that report to Neutron, and do nothing else.

Which ones there are, and what they say of themselves, is in a YAML file that
is read again whenever it changes::

    - host: compute-left
      agent_type: DHCP agent
      configurations: {networks: 3, subnets: 3, ports: 3}

L3 agents answer Neutron, too, when it gives them a router; they do nothing
with it.

Usage: python -m nfv_sched.tests.live.bed.agents --agents FILE
                                                 --config-file NEUTRON.CONF
"""

import argparse
import pathlib
import sys
import time

from nfv_sched.nova import concurrency

concurrency.native_threads()

from neutron.agent import rpc as agent_rpc  # noqa: E402
from neutron.common import config  # noqa: E402
from neutron.conf.agent import common as agent_conf  # noqa: E402
from neutron_lib.agent import topics  # noqa: E402
from neutron_lib import context  # noqa: E402
from neutron_lib import rpc  # noqa: E402
from oslo_config import cfg  # noqa: E402
from oslo_log import log as logging  # noqa: E402
import oslo_messaging  # noqa: E402
import yaml  # noqa: E402

LOG = logging.getLogger(__name__)

_INTERVAL = 3.0
_PAUSE = 0.5
_TIMEOUT = 5
_L3_AGENT = 'L3 agent'
_KINDS = {
    'DHCP agent': ('neutron-dhcp-agent', 'dhcp_agent'),
    _L3_AGENT: ('neutron-l3-agent', 'l3_agent'),
    'Open vSwitch agent': ('neutron-openvswitch-agent', 'N/A'),
}


def _state(agent, start):
    binary, topic = _KINDS[agent['agent_type']]
    return {
        'binary': binary,
        'topic': topic,
        'host': agent['host'],
        'agent_type': agent['agent_type'],
        'configurations': dict(agent['configurations']),
        'start_flag': start,
    }


class _Router:
    """What Neutron calls on an L3 agent."""

    target = oslo_messaging.Target(version='1.4')

    def router_added_to_agent(self, context, payload):
        """Neutron waits until this returns."""

    def router_removed_from_agent(self, context, payload):
        """Nothing is to be taken down."""

    def router_deleted(self, context, router_id):
        """Nothing is to be taken down."""

    def routers_updated(self, context, routers):
        """Nothing is to be changed."""


class Reporter:
    """Reports what the file says."""

    def __init__(self, path: pathlib.Path):
        self._path = path
        self._api = agent_rpc.PluginReportStateAPI(topics.REPORTS)
        self._api.timeout = _TIMEOUT
        self._context = context.get_admin_context_without_session()
        self._known = set()
        self._servers = {}

    def report(self) -> None:
        for agent in yaml.safe_load(self._path.read_text()) or ():
            name = (agent['host'], agent['agent_type'])
            state = _state(agent, name not in self._known)
            try:
                self._answer(*name)
                self._api.report_state(self._context, state, use_call=True)
                self._known.add(name)
            except Exception as exc:
                LOG.warning('%s on %s could not report: %s',
                            agent['agent_type'], agent['host'], exc)

    def _answer(self, host: str, agent_type: str) -> None:
        """Answer for an agent from now on, if Neutron waits for it."""
        if agent_type != _L3_AGENT or host in self._servers:
            return
        server = rpc.get_server(
            oslo_messaging.Target(topic=topics.L3_AGENT, server=host),
            [_Router()])
        server.start()
        self._servers[host] = server

    def run(self) -> None:
        """Report for ever, at once when the file has changed."""
        while True:
            began = time.monotonic()
            changed = self._path.stat().st_mtime_ns
            self.report()
            while (time.monotonic() < began + _INTERVAL and
                   self._path.stat().st_mtime_ns == changed):
                time.sleep(_PAUSE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--agents', type=pathlib.Path, required=True)
    parser.add_argument('--config-file', required=True)
    arguments = parser.parse_args()
    config.register_common_config_options()
    agent_conf.register_agent_state_opts_helper(cfg.CONF)
    config.init(['--config-file', arguments.config_file])
    config.setup_logging()
    Reporter(arguments.agents).run()


if __name__ == '__main__':
    sys.exit(main())
