# SPDX-License-Identifier: Apache-2.0
"""Show how many more servers fit: ``nfv-sched capacity``."""
