# SPDX-License-Identifier: Apache-2.0
"""Work out the configuration of a host: ``nfv-sched host profile``."""
