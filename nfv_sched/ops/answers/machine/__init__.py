# SPDX-License-Identifier: Apache-2.0
"""Read the CPUs, memory and NICs of a host machine from its facts."""
