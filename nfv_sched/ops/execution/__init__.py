# SPDX-License-Identifier: Apache-2.0
"""Carry out the moves of a plan by the APIs of Nova and Neutron."""
