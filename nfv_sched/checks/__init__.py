# SPDX-License-Identifier: Apache-2.0
"""Check the installation for ``nfv-sched-status upgrade check``.

Each check is a function that returns an ``oslo_upgradecheck`` result.  Checks
change nothing.
"""
