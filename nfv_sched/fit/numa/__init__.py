# SPDX-License-Identifier: Apache-2.0
"""Place guests on NUMA nodes by Nova's arithmetic and by rules; no I/O."""
