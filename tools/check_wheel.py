#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check an installed nfv-sched against the source tree it was built from.

Run it in an environment where the wheel is installed, from a directory
outside the source tree::

    python check_wheel.py /path/to/source/tree

Every file of the package and of etc must be installed where it belongs, byte
for byte, every module outside the tests must import, and every entry point
must load.
"""

import configparser
import importlib
from importlib import metadata
import pathlib
import sys

DISTRIBUTION = 'nfv-sched'
PACKAGE = 'nfv_sched'
# Imports what the extra "watcher" installs.
WATCHER = (PACKAGE, 'ops', 'serve', 'watcher')
# Where pip puts the folder etc: into the environment.
PREFIX = pathlib.Path(sys.prefix).resolve()

# Entry-point groups of which every member must load.
GROUPS = (
    'nfv_sched.cli',
    'nfv_sched.filters',
    'nfv_sched.rules',
    'nfv_sched.weighers',
    'nova.api.extra_spec_validators',
    'oslo.config.opts',
)


def expected_files(tree):
    """Files that an installation must have.

    :param tree: root of the source tree
    :returns: set of paths relative to the root, with forward slashes
    """
    found = set()
    for top in (PACKAGE, 'etc'):
        for path in (tree / top).rglob('*'):
            if (path.is_file() and '__pycache__' not in path.parts
                    and path.suffix not in ('.pyc', '.sample', '.swp')):
                found.add(path.relative_to(tree).as_posix())
    return found


def installed_files(distribution):
    """Files that are installed.

    :param distribution: the installed distribution
    :returns: dict of paths relative to site-packages, or for data files to
        the prefix, to where they are
    """
    found = {}
    for path in distribution.files or ():
        where = pathlib.Path(path.locate()).resolve()
        if '..' in path.parts:
            if not where.is_relative_to(PREFIX):
                continue
            name = where.relative_to(PREFIX).as_posix()
        else:
            name = path.as_posix()
        if where.exists():
            found[name] = where
    return found


def wrong_files(tree, distribution):
    """Complaints about files that are missing, or differ from the tree."""
    installed = installed_files(distribution)
    errors = []
    for name in sorted(expected_files(tree)):
        if name not in installed:
            errors.append(f'not installed: {name}')
        elif installed[name].read_bytes() != (tree / name).read_bytes():
            errors.append(f'differs: {name}: {installed[name]}')
    return errors


def broken_modules(tree):
    """Complaints about modules that do not import."""
    errors = []
    for path in sorted((tree / PACKAGE).rglob('*.py')):
        parts = path.relative_to(tree).with_suffix('').parts
        if 'tests' in parts or parts[:4] == WATCHER:
            continue    # they need what the wheel does not require
        name = '.'.join(parts).removesuffix('.__init__')
        try:
            importlib.import_module(name)
        except Exception as exc:
            errors.append(f'does not import: {name}: {exc!r}')
    return errors


def broken_entry_points(tree, distribution):
    """Complaints about entry points that are absent or do not load."""
    declared = configparser.ConfigParser(
        delimiters=('=',), interpolation=None)
    declared.optionxform = str
    declared.read(tree / 'setup.cfg', encoding='utf-8')
    wanted = {
        (group, line.partition('=')[0].strip())
        for group, lines in declared.items('entry_points')
        for line in lines.splitlines() if line.strip()}

    errors = []
    for entry_point in distribution.entry_points:
        wanted.discard((entry_point.group, entry_point.name))
        if entry_point.group not in (*GROUPS, 'console_scripts'):
            continue
        try:
            entry_point.load()
        except Exception as exc:
            errors.append(
                f'does not load: {entry_point.group}: {entry_point.name}: '
                f'{exc!r}')
    errors.extend(
        f'no entry point: {group}: {name}' for group, name in sorted(wanted))
    return errors


def main(argv):
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    tree = pathlib.Path(argv[1]).resolve()

    distribution = metadata.distribution(DISTRIBUTION)
    package = importlib.import_module(PACKAGE)
    where = pathlib.Path(package.__file__).resolve().parent
    if where.is_relative_to(tree / PACKAGE):
        print(f'{PACKAGE} is imported from the source tree, not from the '
              'wheel', file=sys.stderr)
        return 2

    errors = (wrong_files(tree, distribution) + broken_modules(tree) +
              broken_entry_points(tree, distribution))
    for error in errors:
        print(error, file=sys.stderr)
    print(f'{DISTRIBUTION} {distribution.version}: '
          f'{len(expected_files(tree))} files, '
          f'{len(distribution.entry_points)} entry points, '
          f'{len(errors)} errors')
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
