# SPDX-License-Identifier: Apache-2.0
"""Describe extra specs for Glance: ``nfv-sched metadefs save``."""
