# SPDX-License-Identifier: Apache-2.0
"""Serve metrics of a cloud to Prometheus: ``nfv-sched metrics``."""
