# SPDX-License-Identifier: Apache-2.0
"""Record the hosts that filters refuse, why and when: the decision journal.

``nova-scheduler`` writes it to the directory in ``[nfv_sched]
decision_journal``, and the tools read it.  Nothing here imports Nova.
"""
