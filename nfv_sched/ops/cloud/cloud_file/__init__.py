# SPDX-License-Identifier: Apache-2.0
"""Parse and check cloud files, and compile them to snapshots."""
