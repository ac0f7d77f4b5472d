# SPDX-License-Identifier: Apache-2.0
"""May a server be on a host, and which labels hold the claim to it."""
