# SPDX-License-Identifier: Apache-2.0
"""Show what is on hosts: NUMA nodes, cores, devices, and whose they are."""
