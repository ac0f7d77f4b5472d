# SPDX-License-Identifier: Apache-2.0
"""Derive the configuration of a host: ``nfv-sched host profile``."""
