# SPDX-License-Identifier: Apache-2.0
"""Model a cloud at one moment; read it, save it and load it."""
