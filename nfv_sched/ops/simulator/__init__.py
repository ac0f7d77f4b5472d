# SPDX-License-Identifier: Apache-2.0
"""A simulated cloud, scheduled and claimed by Nova's own code.

``start`` makes the ``state`` of a cloud file or a snapshot, ``engine`` runs
steps on it, each with a function of ``steps``; ``expectations`` compares their
outcomes with what the file expects; ``report`` makes tables of the result.
No service, database or network is needed, and no
guest is started: the simulator answers where Nova would place a guest, which
CPUs it would get there, and why it would be refused.
"""
