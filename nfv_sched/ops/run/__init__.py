# SPDX-License-Identifier: Apache-2.0
"""Carry out a saved plan."""
