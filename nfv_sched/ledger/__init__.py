# SPDX-License-Identifier: Apache-2.0
"""Ports and security group rules as resources in Placement."""
