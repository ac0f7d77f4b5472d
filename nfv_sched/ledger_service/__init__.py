# SPDX-License-Identifier: Apache-2.0
"""Keep the ledger in Placement up to date with Nova and Neutron, in rounds."""
