# SPDX-License-Identifier: Apache-2.0
"""Data that the filters and weighers of one nova-scheduler share."""
