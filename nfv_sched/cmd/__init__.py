# SPDX-License-Identifier: Apache-2.0
"""The commands ``nfv-sched-ledger`` and ``nfv-sched-status``."""
