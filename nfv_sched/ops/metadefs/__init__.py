# SPDX-License-Identifier: Apache-2.0
"""Describe extra specs for Glance: ``etc/nfv_sched/metadefs``."""
