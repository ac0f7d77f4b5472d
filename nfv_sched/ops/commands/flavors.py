# SPDX-License-Identifier: Apache-2.0
"""The commands ``nfv-sched flavor lint`` and ``flavor translate``."""

import argparse
import collections
from collections.abc import Sequence

from nfv_sched.base import strings
from nfv_sched.ops.answers.flavors import document
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import flavor_file
from nfv_sched.ops.commands import planning
from nfv_sched.ops.commands import source
from nfv_sched.ops.simulator import progress

_FILES = """\
A file of flavors is JSON or YAML: what "openstack flavor list --all --long
-f json" or "openstack flavor show -f json" print, what Nova's API answers, or
flavors by name with vcpus, ram (MiB) and properties.
"""

_LINT_COLUMNS = ('Flavor', 'Severity', 'Key', 'Finding', 'Do')

_LINT_EPILOG = f"""\
An error means that the API refuses the flavor from microversion 2.86, or that
no host takes it; with --hosts also that no host of the cloud does, even if it
were empty and in service.

With an image: contradictions between flavor and image, whether the image needs
more, and which properties of the image Nova silently drops.

Private flavors, and servers of all projects, need the role admin with --api.

{_FILES}A file of an image is the output of "openstack image show -f json".

examples:
  nfv-sched flavor lint vrouter.16 'fw.*' --hosts --used
  nfv-sched flavor lint --all --hosts --from cloud.json.gz -f json
  nfv-sched flavor lint --file flavors.json --image image.json

exit code: 0, also with warnings and notes; 1 if something could not be read,
and is named; 2 if the command line is wrong; 3 if there are errors.
"""

_TRANSLATE_EPILOG = f"""\
Translates keys of flavors of Helion / Titanium Carrier Grade, or of Intel's
guide to Enhanced Platform Awareness, to keys of Nova and nfv-sched. Keys of
Nova stay. Nothing is changed. "Class" is one of:

  same           the same key with the same value
  changed        the same key with another value
  renamed        another key with the same meaning
  combination    several keys together, or one that comes close
  host option    an option of hosts, not of a flavor
  other service  another service does this
  none           no counterpart
  unknown        a key that Nova refuses, or that is not known
  error          an error that "flavor lint" finds in the new flavor

{_FILES}
With -f commands: a script for sh, which creates flavors of --file that do not
exist. It can be run again after a failure.

examples:
  nfv-sched flavor translate --file flavors.json -f commands
  nfv-sched flavor translate --all --from cloud.json.gz -f json

{planning.exit_codes('something is lost, left to do by hand, or wrong')}"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'names', metavar='NAME', nargs='*',
        help='names of flavors; * and ? stand for anything')
    parser.add_argument('--all', action='store_true', help='all flavors')
    parser.add_argument(
        '--file', metavar='FILE',
        help='flavors of this file, not of the cloud (all, without NAME)')
    parser.add_argument(
        '--image', metavar='FILE', help='properties of an image')
    arguments.add_image_properties(parser)


def _image(parsed_args: argparse.Namespace) -> document.Image:
    image = (document.Image() if parsed_args.image is None
             else flavor_file.image(parsed_args.image))
    return image._replace(
        id=image.id or 'IMAGE',
        properties={**image.properties,
                    **arguments.image_properties(parsed_args)})


def _check(parsed_args: argparse.Namespace) -> None:
    if parsed_args.all and parsed_args.names:
        raise errors.UsageError('either NAME or --all')
    if not (parsed_args.all or parsed_args.names or parsed_args.file):
        raise errors.UsageError('NAME, --all or --file needed')
    if parsed_args.file is None and any(
            name.endswith(('.json', '.yaml')) for name in parsed_args.names):
        raise errors.UsageError('flavors of a file need --file FILE')


class LintFlavor(planning.Report):
    """Find errors and possible improvements in flavors."""

    epilog = _LINT_EPILOG
    schemas = {'flavor-lint': document.FlavorLint}
    cloud = source.Source(takes_api=True)

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        _add_options(parser)
        parser.add_argument(
            '--hosts', action='store_true',
            help='also look whether hosts of the cloud take them')
        parser.add_argument(
            '--used', action='store_true',
            help='also look whether servers of the cloud have them')

    def report(self, parsed_args: argparse.Namespace) -> planning.Output:
        _check(parsed_args)
        image = _image(parsed_args)
        cloud = None
        if parsed_args.file is None or parsed_args.hosts or parsed_args.used:
            parts = (*(('flavors',) if parsed_args.file is None else ()),
                     *(('servers',) if parsed_args.used else ()))
            cloud = self.cloud.read(
                self, parsed_args, None if parsed_args.hosts else parts)
        chosen = arguments.flavors(
            cloud.flavors if parsed_args.file is None else
            flavor_file.flavors(parsed_args.file), parsed_args.names)
        from nfv_sched.ops.answers.flavors.lint import all_rules
        from nfv_sched.ops.answers.flavors.lint import values
        with progress.shown() as update:
            results = all_rules.lint(
                chosen, image=image, cloud=cloud, on_hosts=parsed_args.hosts,
                used=parsed_args.used,
                update=lambda done, total: update(done, total, 'flavors'))
        self.has_findings = any(
            each.severity == values.ERROR for each in results)
        counts = collections.Counter(each.severity for each in results)
        summary = ', '.join([
            strings.count(counts[severity], severity)
            for severity in values.SEVERITIES if counts[severity]])
        rows = [(each.flavor, each.severity, each.key or '', each.finding,
                 each.do) for each in results]
        return planning.Output(
            text=[f'{strings.count(len(chosen), "flavor")}: '
                  f'{summary or "nothing found"}.',
                  *(['', tables.Table(_LINT_COLUMNS, rows)] if rows else [])],
            columns=_LINT_COLUMNS, rows=rows,
            document=documents.Document(document.FlavorLint(
                flavors_checked=len(chosen), findings=tuple(results)),
                ('findings',)))


class TranslateFlavor(planning.PlanCommand):
    """Translate flavors of Helion or Titanium Carrier Grade."""

    epilog = _TRANSLATE_EPILOG
    schemas = {'flavor-translate': document.Translations}
    # No hosts are looked at.
    cloud = source.Source(takes_api=True, takes_changes=False)

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        _add_options(parser)

    def report(self, parsed_args: argparse.Namespace) -> planning.Output:
        image = _image(parsed_args)
        if not image.properties or parsed_args.names or parsed_args.all:
            _check(parsed_args)
        flavors: Sequence[snapshot.Flavor] = ()
        if parsed_args.file is not None:
            flavors = flavor_file.flavors(parsed_args.file)
        elif parsed_args.names or parsed_args.all:
            flavors = self.cloud.read(self, parsed_args, ('flavors',)).flavors
        chosen = arguments.flavors(flavors, parsed_args.names)
        from nfv_sched.ops.answers.flavors import translate
        from nfv_sched.ops.answers.flavors import translate_rendering
        all_translated = [translate.flavor(each) for each in chosen]
        if image.properties:
            all_translated.append(translate.image(image.id, image.properties))
        self.has_findings = any(each.errors or any(
            line.lost for line in each.keys) for each in all_translated)
        return planning.Output(
            text=translate_rendering.text(
                all_translated, are_new=parsed_args.file is not None),
            columns=translate_rendering.COLUMNS,
            rows=translate_rendering.rows(all_translated),
            document=documents.Document(document.Translations(
                translations=tuple(all_translated)), ('translations',)),
            commands=list(translate_rendering.commands(
                all_translated, None if parsed_args.file is None else {
                    each.name: each for each in chosen})))
