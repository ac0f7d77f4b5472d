# SPDX-License-Identifier: Apache-2.0
"""Show hosts: NUMA nodes, cores, memory and devices, and who uses them."""
