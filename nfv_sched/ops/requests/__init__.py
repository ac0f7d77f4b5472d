# SPDX-License-Identifier: Apache-2.0
"""Describe the requests of servers, of those to come with assumed ports."""
