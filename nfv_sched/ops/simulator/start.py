# SPDX-License-Identifier: Apache-2.0
"""Start a simulation: from a cloud file, or from a snapshot."""

from collections.abc import Iterator, Sequence
import contextlib

from nova import exception

from nfv_sched.ops.cloud_file import loader
from nfv_sched.ops.cloud_file import problems
from nfv_sched.ops.cloud_file import scenario as scenarios
from nfv_sched.ops.cloud_file import text as cloud_text
from nfv_sched.ops import placement
from nfv_sched.ops.simulator import configuration
from nfv_sched.ops.simulator import network
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import restore_servers
from nfv_sched.ops.simulator import state as states
from nfv_sched.ops.snapshot import snapshot


@contextlib.contextmanager
def loaded(path: str, *, config_files: Sequence[str] = (),
           reasons: str | None = None, seed: int = 0
           ) -> Iterator[states.State]:
    """Within this context, a simulated cloud is as a cloud file says.

    Its steps are still to be run.

    :param path: the cloud file
    :param config_files: files such as nova.conf
    :param reasons: how much refusals say, as ``expose_reasons``; None for
        what the files say, else all
    :param seed: seed of the random choice among equal hosts
    :returns: context with the cloud
    :raises InputError: if one of the files cannot be used
    """
    text = cloud_text.read(path)
    with configuration.defaults(config_files) as defaults:
        scenario = loader.loads(text, path, defaults,
                                nova_internals.extra_spec_problem)
        with configuration.overrides(scenario, reasons, seed):
            yield states.State(scenario)


@contextlib.contextmanager
def started(cloud: snapshot.Cloud, *, reasons: str | None = None,
            seed: int = 0, scenario: scenarios.Scenario | None = None
            ) -> Iterator[states.State]:
    """Within this context, a simulated cloud is as a snapshot says.

    Nova's configuration is that of the snapshot.  Options that are not known
    here, of another release or of a plugin, are left out.

    :param reasons: how much refusals say, as ``expose_reasons``; None for all
    :param seed: seed of the random choice among equal hosts
    :param scenario: the snapshot with more flavors and the like, and steps;
        None for the snapshot alone
    :returns: context with the cloud
    :raises InputError: if a filter or weigher of the snapshot is not
        installed, or an option of the configuration is bad
    """
    if scenario is None:
        scenario = scenarios.of_snapshot(cloud)
    with (configuration.defaults(),
          configuration.overrides(scenario, reasons, seed)):
        yield restored(cloud, scenario)


def restored(cloud: snapshot.Cloud,
             scenario: scenarios.Scenario | None = None) -> states.State:
    """A simulated cloud as a snapshot says.

    To be used within :func:`started` with the same snapshot.

    :param scenario: as for :func:`started`
    :raises InputError: if a filter or weigher of the snapshot is not installed
    """
    if scenario is None:
        scenario = scenarios.of_snapshot(cloud)
    try:
        state = states.State(scenario)
        # Those by which Nova of this machine, which may be newer than that of
        # the snapshot, asks by itself are not missing.
        state.placement.set_names(
            None if cloud.traits is None else cloud.traits.union(
                name for name in placement.STANDARD_TRAITS
                if name.startswith('COMPUTE_')),
            None if cloud.resource_classes is None else
            cloud.resource_classes | placement.STANDARD_CLASSES)
        restore_servers.restore(state, cloud)
    except (ValueError, exception.NovaException) as e:
        # Nova's objects have enumerations, of hypervisors and the like.
        raise problems.InputError([f'the snapshot: {e}'])
    if not any(host.network for host in cloud.hosts):
        # As for filters that have not read Neutron.
        state.network.become(network.DOWN, ())
    return state
