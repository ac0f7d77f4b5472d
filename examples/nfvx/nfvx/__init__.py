# SPDX-License-Identifier: Apache-2.0
"""A rule of another package, as the documentation shows it.

``nfvx:even_nodes`` is for hosts whose memory bandwidth is shared by two NUMA
nodes each: guests that need all of it are kept to every other node.
"""
