# SPDX-License-Identifier: Apache-2.0
"""The model of a cloud at one moment, its readers, and its file."""
