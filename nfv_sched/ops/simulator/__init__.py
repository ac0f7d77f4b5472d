# SPDX-License-Identifier: Apache-2.0
"""Simulate a cloud, with Nova's own scheduler and claims.

``start`` makes a ``state`` from a cloud file or a snapshot; ``engine`` runs
steps on it, of ``lifecycle`` and ``moves``; ``expectations`` compares the
outcomes with those expected in the file.  No service, database or network is
needed, and no guest is started: the simulator answers where Nova would place a
server, which CPUs it would get there, and why it would be refused.
"""
