# SPDX-License-Identifier: Apache-2.0
"""The cloud as values: read, write, change, anonymize."""
