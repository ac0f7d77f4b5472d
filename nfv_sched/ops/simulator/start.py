# SPDX-License-Identifier: Apache-2.0
"""Start a simulation from a snapshot."""

from collections.abc import Iterator
import contextlib

from nova import exception

from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import configuration
from nfv_sched.ops.simulator import network
from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator import restore_servers
from nfv_sched.ops.simulator import state as states


@contextlib.contextmanager
def started(cloud: snapshot.Cloud, *, reasons: str | None = None,
            seed: int = 0, scenario: scenarios.Scenario | None = None
            ) -> Iterator[states.State]:
    """Simulate the cloud of a snapshot within this context.

    Nova's configuration is that of the snapshot.  Unknown options, of another
    release or a plugin, are ignored.

    :param reasons: value of ``expose_reasons``; None for ``hosts``
    :param seed: seed of the random choice among equal hosts
    :param scenario: the snapshot with steps and additional flavors, images
        and networks; None for the snapshot alone
    :raises InputError: if a filter or weigher of the snapshot is not
        installed, or an option of the configuration is bad
    """
    scenario = scenario or scenarios.of_snapshot(cloud)
    with (configuration.defaults(),
          configuration.overrides(scenario, reasons, seed)):
        yield _restored(scenario)


def restored(cloud: snapshot.Cloud) -> states.State:
    """Return a simulated cloud in the state of a snapshot.

    To be called within :func:`started` with the same snapshot.
    """
    return _restored(scenarios.of_snapshot(cloud))


def _restored(scenario: scenarios.Scenario) -> states.State:
    cloud = scenario.cloud
    try:
        state = states.State(scenario)
        # Nova on this machine may be newer than the cloud, and require traits
        # and resource classes that Placement there did not know yet.
        state.placement.set_names(
            None if cloud.traits is None else cloud.traits.union(
                name for name in placement.STANDARD_TRAITS
                if name.startswith('COMPUTE_')),
            None if cloud.resource_classes is None else
            cloud.resource_classes | placement.STANDARD_CLASSES)
        restore_servers.restore(state, cloud)
    except (ValueError, exception.NovaException) as e:
        # Fields of Nova's objects have limited values, such as hypervisors.
        raise problems.InputError([f'the snapshot: {e}'])
    if not any(host.network for host in cloud.hosts):
        # Nothing would be published in Placement either.
        state.network.become(network.DOWN)
    state.network.refresh(keep_ledgers=True)
    return state
