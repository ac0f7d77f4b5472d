# SPDX-License-Identifier: Apache-2.0

"""The functions that do the steps of a cloud file, one for each action.

Each takes the state of the cloud, a server (or host) and the step, and raises
``servers.Refused`` if Nova refuses it.
"""
