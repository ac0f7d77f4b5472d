# SPDX-License-Identifier: Apache-2.0
"""Show a snapshot as web pages, which change nothing and need no script."""
