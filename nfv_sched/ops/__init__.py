# SPDX-License-Identifier: Apache-2.0
"""The tools for operators; nothing outside of this package imports it."""
