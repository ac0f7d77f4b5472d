# SPDX-License-Identifier: Apache-2.0
"""Use the parts of Nova that it does not promise to plugins."""
