# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched metadefs save``, to be removed."""

import argparse
import os

from nfv_sched import extra_specs
from nfv_sched.ops import atomic_file
from nfv_sched.ops.cli import base
from nfv_sched.rules import place

_EPILOG = """\
The files are those in etc/nfv_sched/metadefs, and with --place have keys of
more places. Nothing is read, and Glance is not asked. Load them with:

  glance-manage db load_metadefs --path DIRECTORY --merge --prefer_new

or in Horizon, a file at a time: Admin, System, Metadata Definitions, Import
Namespace.

examples:
  nfv-sched metadefs save /tmp/metadefs
  nfv-sched metadefs save /tmp/metadefs --place osd --place nvme

exit code: 0; 1 if a file cannot be written; 2 if the command line is wrong.
"""


def _place(text: str) -> str:
    """Return the name of a place from the command line."""
    if not place.NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f'{extra_specs.shown(text)} is not a name of a place: 1 to 64 '
            'letters, digits, "_" and "-"')
    return text


class SaveMetadefs(base.Command):
    """Save metadata definitions of the extra specs, for Glance and Horizon.

    Horizon then offers them, with what they mean and which values they take,
    for flavors, images and host aggregates.
    """

    epilog = _EPILOG

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'directory', metavar='DIRECTORY',
            help='where to write the files; made if it is missing, and files '
                 'of these names that are there are replaced')
        parser.add_argument(
            '--place', action='append', default=[], metavar='NAME',
            type=_place,
            help='a place that hosts declare by the label nfv_NAME, for '
                 'nfv:numa_affinity.NAME and nfv:numa_anti_affinity.NAME; can '
                 'be repeated')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the files.

        :returns: exit code
        """
        from nfv_sched.ops.metadefs import metadefs
        try:
            os.makedirs(parsed_args.directory, exist_ok=True)
            for namespace in metadefs.namespaces(
                    {'place': parsed_args.place}):
                path = os.path.join(parsed_args.directory, namespace.file)
                content = namespace.text().encode()
                atomic_file.write(path, lambda file: file.write(content))
                self.app.stdout.write(
                    f'{path}: {namespace.name}, '
                    f'{len(namespace.properties)} properties\n')
        except (OSError, atomic_file.WriteError) as exc:
            return self.print_error(exc)
        return 0
