# SPDX-License-Identifier: Apache-2.0
"""Model Placement, and check hosts against allocation candidate queries."""

from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator.placement import model
from nfv_sched.ops.simulator.placement import queries
from nfv_sched.ops.simulator.placement import resource_provider

Allocations = model.Allocations
Placement = model.PlacementModel
Provider = resource_provider.ResourceProvider
STANDARD_CLASSES = model.STANDARD_CLASSES
STANDARD_TRAITS = model.STANDARD_TRAITS

Query = queries.Query
Unknown = queries.QueriedName
allocations_of = model.allocations_of
inventory = snapshot.Inventory.of_total
refusal = queries.refusal
