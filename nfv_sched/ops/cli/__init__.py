# SPDX-License-Identifier: Apache-2.0
"""The application ``nfv-sched`` and the output of its commands."""
