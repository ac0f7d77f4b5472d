# SPDX-License-Identifier: Apache-2.0
"""Read the network load of hosts from Neutron, and count it."""
