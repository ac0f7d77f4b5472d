# SPDX-License-Identifier: Apache-2.0
"""How far one has to read: calls and changes of file for one host.

What a filter pass does for one more host, from ``filter_all`` to the limits:
the calls of functions of nfv-sched, the files that they are in, and how often
a call is in another file than the one before it.  With
``NFVTopologyFilter``, which decides, and with all NUMA filters; for a host
that is like one before it, and for one that is not.

Usage: python benchmarks/calls.py [--show]
"""

import argparse
import logging
import os
import random
import sys
import warnings

warnings.simplefilter('ignore')

import chain  # noqa: E402
import nova.conf  # noqa: E402
from nova import objects  # noqa: E402

import nfv_sched  # noqa: E402
from nfv_sched import filters  # noqa: E402

ROOT = os.path.dirname(nfv_sched.__file__) + os.sep


def calls(numa_topologies, extra_specs, filter_classes):
    """The (file, function) of each call of a pass over some hosts."""
    states = chain.host_states(numa_topologies)
    spec, found = chain.request(extra_specs), []
    enabled = [cls() for cls in filter_classes]

    def note(frame, event, _arg):
        name = frame.f_code.co_filename
        if event == 'call' and name.startswith(ROOT):
            found.append((name.removeprefix(ROOT), frame.f_code.co_name))

    sys.setprofile(note)
    try:
        for instance in enabled:
            states = list(instance.filter_all(states, spec))
    finally:
        sys.setprofile(None)
    return found


def changes(found):
    """How often a call is in another file than the one before it."""
    return sum(one[0] != other[0] for one, other in zip(found, found[1:]))


def main():
    """Print a line for each kind of request, host and chain."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition('\n')[0])
    parser.add_argument(
        '--show', action='store_true',
        help='also print the calls for a strict host that is like another')
    parser.add_argument(
        '--quick', action='store_true', help='changes nothing: it is quick')
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    objects.register_all()
    nova.conf.CONF([], project='nova', default_config_files=[])
    rng = random.Random(1)
    first, other = (chain.topology(rng, True) for _ in range(2))
    for cell in other.cells:
        cell.network_metadata.physnets.add('another')
    everything = chain.numa_only(filters.all_filters())
    nova.conf.CONF.set_override(
        'enabled_filters', [cls.__name__ for cls in everything],
        'filter_scheduler')
    row = '%-24s %-10s %-8s %6s %6s %8s'
    print(row % ('guest', 'filters', 'host', 'calls', 'files', 'changes'))
    for name, extra_specs in chain.REQUESTS.items():
        for label, classes in (('topology', chain.DECISION[:1]),
                               ('all', everything)):
            calls([first], extra_specs, classes)  # what is done but once
            for kind, second in (('alike', first), ('another', other)):
                one = calls([first], extra_specs, classes)
                two = calls([first, second], extra_specs, classes)
                print(row % (
                    name, label, kind, len(two) - len(one),
                    len({file for file, _function in two}),
                    changes(two) - changes(one)))
    if options.show:
        print()
        for file, function in calls(
                [first, first], chain.REQUESTS['PCI and vSwitch strict'],
                chain.DECISION[:1]):
            print(f'{file:24s} {function}')


if __name__ == '__main__':
    main()
