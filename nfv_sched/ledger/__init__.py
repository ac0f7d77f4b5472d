# SPDX-License-Identifier: Apache-2.0
"""Read the ledger in Placement, and name and change its providers."""
