# SPDX-License-Identifier: Apache-2.0
"""Get the cloud that a command is about; save and simulate clouds."""
