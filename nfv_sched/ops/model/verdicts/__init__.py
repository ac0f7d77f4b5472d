# SPDX-License-Identifier: Apache-2.0
"""Ask Placement and each filter alone which hosts they refuse, and why."""
