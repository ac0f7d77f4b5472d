# SPDX-License-Identifier: Apache-2.0
"""Serve figures of a cloud to Prometheus: ``nfv-sched metrics``."""
