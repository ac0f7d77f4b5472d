# SPDX-License-Identifier: Apache-2.0
"""Hypothetical servers, hosts and moves."""
