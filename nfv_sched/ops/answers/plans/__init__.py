# SPDX-License-Identifier: Apache-2.0
"""Plan moves of servers that free capacity or empty a host.

Each plan is derived from a snapshot, and was carried out step by step on a
copy of the cloud before it is shown.  Nothing is moved.
"""
