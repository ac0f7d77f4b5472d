# SPDX-License-Identifier: Apache-2.0
"""Read from Neutron what the network puts on hosts, and count it."""
