# SPDX-License-Identifier: Apache-2.0
"""The commands: options, what they call, and columns."""
