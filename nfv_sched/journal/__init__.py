# SPDX-License-Identifier: Apache-2.0
"""The decision journal: what was refused, why, and when.

``nova-scheduler`` writes it where ``[nfv_sched] decision_journal`` says, and
the tools read it.  Nothing here knows Nova.
"""
