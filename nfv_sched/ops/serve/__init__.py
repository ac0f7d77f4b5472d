# SPDX-License-Identifier: Apache-2.0
"""A snapshot over HTTPS, as pages and as metrics."""
