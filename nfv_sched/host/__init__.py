# SPDX-License-Identifier: Apache-2.0
"""Decide about a host, work out what servers occupy, and write the limits."""
