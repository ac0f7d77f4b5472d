# SPDX-License-Identifier: Apache-2.0
"""Check flavors and translate them: ``nfv-sched flavor``."""
