# SPDX-License-Identifier: Apache-2.0
"""Strategies for OpenStack Watcher.

Watcher's decision engine loads them.  They import nothing of Nova: its options
and Watcher's cannot be in one process.
"""
