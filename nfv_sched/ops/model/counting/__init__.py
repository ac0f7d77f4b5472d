# SPDX-License-Identifier: Apache-2.0
"""Count the servers that fit on hosts, and name what limits them."""
