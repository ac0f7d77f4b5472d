# SPDX-License-Identifier: Apache-2.0
"""Describe requests of existing servers, and of new ones with likely ports."""
