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
    """Simulate a cloud file, whose steps are not run yet, in this context.

    :param reasons: see :func:`nfv_sched.ops.simulator.start.started`
    :raises InputError: if one of the files cannot be used
    """
    with configuration.defaults(config_files) as defaults:
        scenario = loader.load(path, defaults,
                               nova_internals.extra_spec_problem)
        with configuration.overrides(scenario, reasons, seed):
            yield states.State(scenario)
