# SPDX-License-Identifier: Apache-2.0
"""What Tempest loads through the entry-point group tempest.test_plugins."""

import os

from tempest import config
from tempest.test_discover import plugins

import nfv_sched
from nfv_sched.tests.tempest import config as nfv_config


class NFVSchedTempestPlugin(plugins.TempestPlugin):
    """Tests of nfv-sched through the public APIs of a cloud."""

    def load_tests(self):
        top = os.path.dirname(os.path.dirname(
            os.path.abspath(nfv_sched.__file__)))
        return os.path.join(top, 'nfv_sched', 'tests', 'tempest', 'tests'), top

    def register_opts(self, conf):
        conf.register_opt(nfv_config.SERVICE_OPTION,
                          group='service_available')
        config.register_opt_group(
            conf, nfv_config.GROUP, nfv_config.OPTIONS)

    def get_opt_lists(self):
        return [
            ('service_available', [nfv_config.SERVICE_OPTION]),
            (nfv_config.GROUP.name, nfv_config.OPTIONS),
        ]

    def get_service_clients(self):
        """The APIs of Nova for which Tempest has no client."""
        return [{
            'name': 'nfv_sched_compute',
            'service_version': 'nfv_sched.compute',
            'module_path': 'nfv_sched.tests.tempest.services',
            'client_names': ['ServerTopologyClient'],
            **config.service_client_config('compute'),
        }]
