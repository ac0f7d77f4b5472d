# SPDX-License-Identifier: Apache-2.0
"""Draw maps of hosts: each core, who uses it, and what is near it."""
