# SPDX-License-Identifier: Apache-2.0
"""The questions of operators, a folder for each."""
