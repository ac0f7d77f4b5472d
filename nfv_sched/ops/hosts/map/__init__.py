# SPDX-License-Identifier: Apache-2.0
"""Maps of hosts: each core, whose it is, and what is near it.

As text for terminals, as a picture, and as a page that needs nothing else.
"""
