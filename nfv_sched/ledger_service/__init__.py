# SPDX-License-Identifier: Apache-2.0
"""Keep the ledger in Placement as Nova and Neutron say, in rounds."""
