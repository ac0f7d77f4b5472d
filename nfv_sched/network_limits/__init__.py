# SPDX-License-Identifier: Apache-2.0
"""Enforce the limits of ports and security group rules of hosts."""
