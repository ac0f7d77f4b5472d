# SPDX-License-Identifier: Apache-2.0
"""Check flavors for mistakes, one rule at a time."""
