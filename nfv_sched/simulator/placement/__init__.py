# SPDX-License-Identifier: Apache-2.0
"""A model of Placement."""

from nfv_sched.simulator.placement import model

Group = model.Group
Inventory = model.Inventory
Miss = model.Miss
MissKind = model.MissKind
Placement = model.Placement
Provider = model.Provider
Query = model.Query
Unknown = model.Unknown
ignorance = model.ignorance
refusal = model.refusal
