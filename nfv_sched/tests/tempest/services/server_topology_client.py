# SPDX-License-Identifier: Apache-2.0
"""The NUMA topology of a server, which Nova shows since 2.78."""

import json

from tempest.lib.common import rest_client
from tempest.lib.services.compute import base_compute_client

_NODE = {
    'type': 'object',
    'properties': {
        'cpu_pinning': {'type': 'object'},
        'host_node': {'type': 'integer'},
        'memory_mb': {'type': 'integer'},
        'siblings': {'type': 'array'},
        'vcpu_set': {'type': 'array', 'items': {'type': 'integer'}},
    },
    'additionalProperties': False,
    'required': ['memory_mb', 'siblings', 'vcpu_set'],
}

_TOPOLOGY = {
    'status_code': [200],
    'response_body': {
        'type': 'object',
        'properties': {
            'nodes': {'type': 'array', 'items': _NODE},
            'pagesize_kb': {'type': ['integer', 'null']},
        },
        'additionalProperties': False,
        'required': ['nodes', 'pagesize_kb'],
    },
}


class ServerTopologyClient(base_compute_client.BaseComputeClient):
    """``GET /servers/{server_id}/topology``."""

    def show_server_topology(self, server_id):
        """Return the guest NUMA nodes of a server.

        :returns: body with ``nodes``; an administrator finds the host NUMA
            node and the pinned CPUs of each
        """
        resp, body = self.get(f'servers/{server_id}/topology')
        body = json.loads(body)
        self.validate_response(_TOPOLOGY, resp, body)
        return rest_client.ResponseBody(resp, body)
