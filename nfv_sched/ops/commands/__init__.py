# SPDX-License-Identifier: Apache-2.0
"""The commands: options, what they call, and columns.

Functions import what imports Nova, or the client's libraries: that takes
seconds, for which --help must not wait.
"""
