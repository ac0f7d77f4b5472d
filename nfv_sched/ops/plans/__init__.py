# SPDX-License-Identifier: Apache-2.0
"""Plans: who is moved where, so that there is room, or a host is empty.

Snapshot in, values out.  Nothing is moved, and nothing is shown that was not
done on a copy of the cloud, step by step.
"""
