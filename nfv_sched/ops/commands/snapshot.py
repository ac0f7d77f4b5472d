# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched snapshot save``."""

import argparse
from collections.abc import Mapping

from nfv_sched.base import strings
from nfv_sched.ops.cli import base
from nfv_sched.ops.cloud import anonymize
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source

_EPILOG = """\
Reads the nova.conf of nova-scheduler. Nova's databases, by an account that may
only SELECT, Placement and Neutron are only read. Only the owner of the file
can read it.

With --anonymize, names and UUIDs are replaced, and so is every other word that
neither Nova, Placement nor nfv-sched defines, the same wherever it is used.
Numbers, times, versions and PCI addresses stay; free texts are left out.

examples:
  nfv-sched snapshot save cloud.json.gz --config-file /etc/nova/nova.conf
  nfv-sched snapshot save --anonymize for-the-vendor.json.gz

exit code: 0; 1 if something could not be read, and is named; the file has what
could; 2 if the command line is wrong.
"""


class SaveSnapshot(base.Command):
    """Save the cloud as it is now to a file.

    The file has hosts, servers, flavors, aggregates, server groups, and the
    options that decide where servers go. It is compressed JSON.
    """

    epilog = _EPILOG
    writes = 'file'

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            'file', metavar='FILE',
            help='where to write it; a file that is there is replaced; - for '
                 'standard output')
        parser.add_argument(
            '--anonymize', action='store_true',
            help='replace names and UUIDs')
        base.add_configuration(parser)

    def take_action(self, parsed_args) -> int:
        cloud = source.live_cloud(self, parsed_args)
        self.app.stdout.writelines(
            save(cloud, parsed_args.file, parsed_args.anonymize))
        self.unread += map(str, cloud.missing)
        return 0


def save(cloud: snapshot.Cloud, path: str, anonymous: bool) -> list[str]:
    """Write a snapshot; return lines about what was written."""
    replaced: Mapping[str, int] = {}
    if anonymous:
        cloud, replaced = anonymize.replace(cloud)
    size = file.save(cloud, path)
    size_text = (f'{size / 10 ** 3:.1f} kB' if size < 10 ** 6
                 else f'{size / 10 ** 6:.1f} MB')
    lines = [
        f'{path}: {strings.count(len(cloud.hosts), "host")}, '
        f'{strings.count(len(cloud.servers), "server")}, {size_text}\n']
    if replaced:
        lines.append(
            f'{strings.count(sum(replaced.values()), "free text")} '
            'replaced: ' + strings.some(
                f'{field} ({count})'
                for field, count in replaced.items()) + '\n')
    return lines
