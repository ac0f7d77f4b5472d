# SPDX-License-Identifier: Apache-2.0
"""May a host carry more ports and security group rules."""
