# SPDX-License-Identifier: Apache-2.0
"""Plan moves of routers and DHCP servers: ``nfv-sched agent rebalance``."""
