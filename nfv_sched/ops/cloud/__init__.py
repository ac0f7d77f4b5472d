# SPDX-License-Identifier: Apache-2.0
"""Read the cloud for a command; save and simulate clouds."""
