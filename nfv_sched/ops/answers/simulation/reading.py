# SPDX-License-Identifier: Apache-2.0
"""Read the steps of a simulation."""

from collections.abc import Iterator, Sequence
import contextlib
import dataclasses

from nfv_sched.ops.cloud.cloud_file import loader
from nfv_sched.ops.cloud.cloud_file import sequence
from nfv_sched.ops.cloud.cloud_file import text as cloud_text
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import configuration
from nfv_sched.ops.simulator import state as states


@contextlib.contextmanager
def loaded(path: str, *, config_files: Sequence[str] = (),
           reasons: str | None = None, seed: int = 0,
           sequence_path: str | None = None) -> Iterator[states.State]:
    """Simulate a cloud file, and a sequence, not run yet, in this context."""
    with configuration.defaults(config_files) as defaults:
        scenario = loader.load(path, defaults)
        if sequence_path is not None:
            scenario = sequence.play(scenario, sequence_path)
        with configuration.overrides(scenario, reasons, seed):
            yield states.State(scenario)


def steps(path: str | None, cloud: snapshot.Cloud,
          sequence_path: str | None) -> scenarios.Scenario:
    """Read steps for a snapshot, and a sequence; at least one of the two."""
    if path is None:
        scenario = dataclasses.replace(
            scenarios.of_snapshot(cloud), path=sequence_path)
    else:
        scenario = loader.loads_steps(cloud_text.read(path), path, cloud)
    return scenario if sequence_path is None else sequence.play(
        scenario, sequence_path)
