# SPDX-License-Identifier: Apache-2.0

"""Perform the steps of a cloud file, with one function for each action.

Each function takes the state of the cloud, a server (or host) and the step,
and raises ``servers.Refused`` if Nova refuses the request.
"""
