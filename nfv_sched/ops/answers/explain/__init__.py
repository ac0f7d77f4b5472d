# SPDX-License-Identifier: Apache-2.0
"""Explain where a server fits, and why not elsewhere."""
