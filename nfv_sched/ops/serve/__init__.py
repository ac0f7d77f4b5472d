# SPDX-License-Identifier: Apache-2.0
"""Serve a snapshot of the cloud over HTTPS."""
