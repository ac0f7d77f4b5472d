# SPDX-License-Identifier: Apache-2.0
"""Define options that several commands have, and find what they name."""

import argparse
from collections.abc import Iterable, Sequence
import fnmatch
import re
import typing as ty

from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import names as name_checks
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import movable

HOST = 'host'
# Maximum number of ports of a new server; each is an object of Nova.
_MOST_PORTS = 1000
# What makes a pattern of a name.
_WILDCARD = re.compile('[*?[]')


def chosen(names: Iterable[str], patterns: Sequence[str],
           noun: str) -> list[str]:
    """Return the names that match a pattern; all names without patterns.

    :param patterns: with ``*`` and ``?``
    :param noun: noun for the names in the error message; of a ``host`` the
        first label is enough
    :raises NotInCloudError: if a pattern matches none
    """
    names = list(names)
    if not patterns:
        return names
    selected = set()
    for pattern in patterns:
        # A name with brackets does not match itself as a pattern.
        matches = {name for name in names if name == pattern
                   or fnmatch.fnmatchcase(name, pattern)}
        if not matches and is_pattern(pattern):
            raise errors.NotInCloudError(
                f'no {noun} matches {pattern!r}{name_checks.there_are(names)}')
        if not matches and noun == HOST:
            matches = {host_name(names, pattern)}
        if not matches:
            raise errors.NotInCloudError(
                name_checks.unknown(noun, pattern, names))
        selected |= matches
    return [name for name in names if name in selected]


def host_name(hosts: Iterable[str], name: str) -> str:
    """Return the name of the host that a command line means.

    :param name: name of a host, or the first label of it if it is unique
    :raises NotInCloudError: if no host or several match
    """
    hosts = list(hosts)
    if name in hosts:
        return name
    matches = sorted({
        each for each in hosts if each.partition('.')[0] == name})
    if not matches:
        raise errors.NotInCloudError(name_checks.unknown(HOST, name, hosts))
    if len(matches) > 1:
        raise errors.NotInCloudError(
            f'several hosts named {name!r}: {", ".join(matches)}')
    return matches[0]


def is_pattern(text: str) -> bool:
    return _WILDCARD.search(text) is not None


def flavor(cloud: snapshot.Cloud, name: str) -> snapshot.Flavor:
    for each in cloud.flavors:
        if each.name == name:
            return each
    raise errors.NotInCloudError(name_checks.unknown(
        'flavor', name, [each.name for each in cloud.flavors]))


def flavors(all_flavors: Sequence[snapshot.Flavor],
            patterns: Sequence[str]) -> list[snapshot.Flavor]:
    names = set(chosen(
        [each.name for each in all_flavors], patterns, 'flavor'))
    return [each for each in all_flavors if each.name in names]


def number(text: str, least: int = 0) -> int:
    value = int(text)
    if value < least:
        raise argparse.ArgumentTypeError(f'a number from {least} is needed')
    return value


def positive(text: str) -> int:
    return number(text, 1)


def amount(text: str, least: float, most: float, description: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = least - 1
    # Also false for NaN.
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not {description} from {least:g} to {most:g}')
    return value


def add_image(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--image', metavar='NAME|ID',
        help='the image, whose properties are read from Glance')
    add_image_properties(parser)


def add_image_properties(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--image-property', action='append', default=[],
        dest='properties', metavar='KEY=VALUE',
        help='a property of the image; can be repeated')


def image_properties(parsed_args: argparse.Namespace) -> dict[str, str]:
    properties = {}
    for text in parsed_args.properties:
        key, equals, value = text.partition('=')
        if not (key and equals):
            raise errors.UsageError(
                f'--image-property {text}: KEY=VALUE needed')
        properties[key] = value
    return properties


def glance_properties(parsed_args: argparse.Namespace) -> dict[str, str]:
    """Return image properties; those of the command line come first."""
    properties = image_properties(parsed_args)
    if parsed_args.image is None:
        return properties
    if parsed_args.source is not None:
        raise errors.UsageError(
            '--image: a file has no images; give the properties with '
            '--image-property KEY=VALUE')
    from nfv_sched.ops.model.requests import images
    return {**images.properties(parsed_args.image), **properties}


def add_networks(parser: argparse.ArgumentParser, replaced: str = '') -> None:
    parser.add_argument(
        '--network', action='append', default=[], dest='networks',
        metavar='NET[,physnet=P][,vnic-type=T][,trusted=B]',
        help=f'network, by name or ID, of a port{replaced}; one that the '
             'cloud does not show needs physnet=P; without a vNIC type '
             'normal, or as all ports there; can be repeated')


def add_ports(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        '--like', metavar='UUID|NAME',
        help='new servers have the ports of this server (default: those '
             'that most servers of the flavor have)')
    group.add_argument(
        '--ports', type=number, metavar='N',
        help='new servers have N ports on the virtual switch, on networks '
             'that are not near any NUMA node')
    add_networks(group)


def ports(cloud: snapshot.Cloud, options: ty.Any) -> ty.Any:
    """Return the ``assumed_ports.Choice`` of the options of ``add_ports``."""
    from nfv_sched.ops.model.requests import assumed_ports
    # The plan that is made again may be a file that somebody edited.
    if (options.ports or 0) > _MOST_PORTS:
        raise errors.UsageError(f'--ports: {_MOST_PORTS} at most')
    if options.networks:
        return assumed_ports.of_networks(cloud, options.networks)
    if options.like is not None:
        return assumed_ports.of_server(server(cloud, options.like))
    return options.ports


def server(cloud: snapshot.Cloud, name: str) -> snapshot.Server:
    from nfv_sched.ops.model.requests import subject
    return subject.find(cloud, name)


def add_hosts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--host', action='append', default=[], metavar='PATTERN',
        help='only these hosts; * and ? stand for anything; can be repeated')
    add_host_groups(parser)


def add_host_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'hosts', metavar='HOST', nargs='*',
        help='name of a host, or a pattern with * and ?')
    add_host_groups(parser)


def add_host_groups(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--aggregate', action='append', default=[], metavar='PATTERN',
        help='only hosts of these aggregates; can be repeated')
    add_zone(parser, action='append', default=[], dest='az', metavar='PATTERN',
             help='only hosts of these availability zones; can be repeated')


def host_names(cloud: snapshot.Cloud, names: Sequence[str],
               parsed_args: argparse.Namespace) -> list[str]:
    """Return names of hosts, without those of ``--avoid``."""
    options = movable.MoveOptions(avoid=getattr(parsed_args, 'avoid', ()))
    result = [host.name for host in hosts(
        cloud, names, parsed_args.az, parsed_args.aggregate)
        if not options.avoids(host.name)]
    if options.avoid and not result:
        raise errors.UsageError('--avoid leaves out all of the hosts')
    return list(dict.fromkeys(result))


def check_host_groups(parsed_args: argparse.Namespace) -> None:
    if not (parsed_args.hosts or parsed_args.aggregate or parsed_args.az):
        raise errors.UsageError(
            'HOST, --aggregate or --availability-zone is needed')


def add_relax(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--relax', action='store_true',
        help='say which policies, one or two, keep a server there')


def add_seconds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--seconds', type=positive, metavar='S',
        help='time limit of each search, in seconds (default: 30, or 5 where '
             'hosts are emptied in rounds)')


def add_moves(parser: argparse.ArgumentParser,
              most: int | None = None) -> None:
    parser.add_argument(
        '--max-moves', type=positive, default=most, metavar='M',
        help=f'maximum number of moves (default: {most or "all"})')
    add_seconds(parser)


def add_avoid(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--avoid', action='append', default=[], metavar='PATTERN',
        help='do not move such servers (names, UUIDs), nor from or to such '
             'hosts; can be repeated')


def add_zone(parser: argparse.ArgumentParser, *, help: str,
             **options: ty.Any) -> None:
    parser.add_argument('--availability-zone', help=help, **options)
    parser.add_argument('--az', '--zone', help=argparse.SUPPRESS, **options)


def hosts(cloud: snapshot.Cloud, names: Sequence[str] = (),
          zones: Sequence[str] = (),
          aggregates: Sequence[str] = ()) -> list[snapshot.Host]:
    """Return hosts that match each kind of pattern given; all without any."""
    hosts = list(cloud.hosts)
    for each in cloud.aggregates:
        if each.name in aggregates and not each.hosts:
            raise errors.NotInCloudError(
                f'aggregate {each.name!r} has no hosts')
    for patterns, what, of in (
        (names, HOST, lambda host: (host.name,)),
        (zones, 'availability zone', lambda host: (host.zone,)),
        (aggregates, 'aggregate', lambda host: host.aggregates),
    ):
        if patterns:
            all_names = {name for host in cloud.hosts for name in of(host)}
            chosen_names = set(chosen(sorted(all_names), patterns, what))
            hosts = [host for host in hosts if chosen_names & set(of(host))]
    return hosts
