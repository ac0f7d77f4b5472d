# SPDX-License-Identifier: Apache-2.0
"""Show the decision journal: ``nfv-sched server explain --then``."""
