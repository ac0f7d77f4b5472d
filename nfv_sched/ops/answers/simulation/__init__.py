# SPDX-License-Identifier: Apache-2.0
"""The outcome of a simulation, as text and document."""
