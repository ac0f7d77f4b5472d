# SPDX-License-Identifier: Apache-2.0

from nfv_sched.tests.tempest.services.server_topology_client import (
    ServerTopologyClient)

__all__ = ['ServerTopologyClient']
