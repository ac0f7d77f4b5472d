# SPDX-License-Identifier: Apache-2.0
"""Start a simulation from a cloud file."""

from collections.abc import Iterator, Sequence
import contextlib

from nfv_sched.ops.cloud.cloud_file import loader
from nfv_sched.ops.simulator import configuration
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import state as states


@contextlib.contextmanager
def loaded(path: str, *, config_files: Sequence[str] = (),
           reasons: str | None = None, seed: int = 0
           ) -> Iterator[states.State]:
    """Simulate the cloud of a cloud file within this context.

    Its steps are not run yet.

    :param config_files: files such as nova.conf
    :param reasons: value of ``expose_reasons``; None for that of the files,
        or else ``hosts``
    :param seed: seed of the random choice among equal hosts
    :raises InputError: if one of the files cannot be used
    """
    with configuration.defaults(config_files) as defaults:
        scenario = loader.load(path, defaults,
                               nova_internals.extra_spec_problem)
        with configuration.overrides(scenario, reasons, seed):
            yield states.State(scenario)
