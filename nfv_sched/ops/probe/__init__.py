# SPDX-License-Identifier: Apache-2.0
"""Test claims of the ledger in Placement: ``nfv-sched ledger probe``."""
