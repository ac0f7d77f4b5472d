# SPDX-License-Identifier: Apache-2.0
"""Check placement guarantees and find inconsistent records."""
