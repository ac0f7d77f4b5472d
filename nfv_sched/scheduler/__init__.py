# SPDX-License-Identifier: Apache-2.0
"""What the filters and weighers of one nova-scheduler share."""
