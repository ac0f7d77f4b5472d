# SPDX-License-Identifier: Apache-2.0
"""Find the example clouds.

The examples are data files outside the package: in ``etc/`` of a source tree,
or in ``<prefix>/etc/nfv_sched/examples`` if installed.
"""

import importlib.metadata
import pathlib

import nfv_sched

_DIRECTORY = ('etc', 'nfv_sched', 'examples')


def find() -> dict[str, pathlib.Path]:
    """Return the path of each example by name, such as ``platform/numa``."""
    try:
        files = importlib.metadata.files('nfv-sched') or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()
    paths = {}
    for file in files:
        # Paths of data files begin outside the package: ../../../etc/...
        parts = tuple(part for part in file.parts if part != '..')
        if file.suffix == '.yaml' and parts[:len(_DIRECTORY)] == _DIRECTORY:
            name = '/'.join(parts[len(_DIRECTORY):])
            path = pathlib.Path(file.locate()).resolve()
            if path.is_file():
                paths[name.removesuffix('.yaml')] = path
    root = pathlib.Path(nfv_sched.__file__).resolve().parents[1].joinpath(
        *_DIRECTORY)
    paths.update((file.relative_to(root).with_suffix('').as_posix(), file)
                 for file in root.rglob('*.yaml'))
    return dict(sorted(paths.items()))


def description(path: pathlib.Path) -> str:
    """Return the first comment line of an example; empty if it has none."""
    with path.open(encoding='utf-8') as lines:
        return next((line.strip('# \n') for line in lines
                     if line.startswith('#')), '')
