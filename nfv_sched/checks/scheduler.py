# SPDX-License-Identifier: Apache-2.0
"""Check filters, weighers, options and validators."""

from collections.abc import Iterator
import contextlib
import difflib
import inspect
import os
import typing as ty

from nova.scheduler import filters as nova_filters
from nova.scheduler import weights as nova_weights
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nfv_sched.base import conf as nfv_conf
from nfv_sched.base import extensions
from nfv_sched.base import strings
from nfv_sched.checks import findings
from nfv_sched import filters as nfv_filters
from nfv_sched.fit.numa import rule
from nfv_sched.fit import rules
from nfv_sched.nova import behaviour
from nfv_sched.nova import features
from nfv_sched.nova import interfaces
from nfv_sched.nova import scheduler
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import shadow
from nfv_sched.weights import base as weights_base
from nfv_sched.weights import multiplier
from nfv_sched.weights import network
from nfv_sched.weights import numa_fragmentation

NOVA_FILTERS = 'nova.scheduler.filters.all_filters'
NFV_FILTERS = 'nfv_sched.filters.all_filters'
NOVA_WEIGHERS = 'nova.scheduler.weights.all_weighers'
NFV_WEIGHERS = 'nfv_sched.weights.all_weighers'

TOPOLOGY = 'NFVTopologyFilter'
STOCK_TOPOLOGY = notes.STOCK
VSWITCH = 'VSwitchNUMAAffinityFilter'
PCI = 'PCINUMAAffinityFilter'
STOCK_PCI = 'PciPassthroughFilter'
RULES = 'SecurityRuleLimitFilter'
#: Filter of a limit -> limits that are not enforced without it.
LIMITS = {
    'VSwitchPortLimitFilter': 'limits of ports',
    RULES: 'limits of security-group rules',
}
_FRAGMENTATION = numa_fragmentation.NUMAFragmentationWeigher
_Weigher = ty.TypeVar('_Weigher', bound=multiplier.MultipliedWeigher)
_MULTIPLIER = '_weight_multiplier'
# Multipliers of Nova that are to outweigh everything.
_PARAMOUNT = ('build_failure', 'cross_cell_move')


def nova_interfaces() -> upgradecheck.Result:
    """Check that Nova and its libraries have what the filters use."""
    lacking = interfaces.missing()
    problems = [findings.failure(f'{features.text(lacking)}.')] if (
        lacking) else [findings.warning(
            'Nova is not as its release, so hosts may be judged wrongly: '
            f'{text}.') for text in behaviour.differences()]
    return findings.conclude(
        problems,
        'Nova and its libraries have all that the filters and weighers use.')


def _specs_by_filter() -> dict[str, str]:
    """Return filter -> the extra spec, or rule, not enforced without it."""
    # Without the rules of Nova's own extra specs. A rule of another package
    # may have a name only.
    return {cls.filters[0]: cls.keys[0] if cls.keys else cls.name
            for cls in rules.classes() if cls.keys or not cls.always_active}


def _preferences() -> dict[str, type[weights_base.PreferenceWeigher]]:
    """Return filter -> weigher, for policies that can be preferred."""
    # A weigher whose rule is not installed has nothing to weigh.
    keeps = _specs_by_filter()
    return {cls.rule.filters[0]: cls
            for cls in _weighers(weights_base.PreferenceWeigher)
            if cls.rule.filters[0] in keeps}


def _weighers(base: type[_Weigher]) -> list[type[_Weigher]]:
    return [cls for cls in extensions.classes('nfv_sched.weighers')
            if inspect.isclass(cls) and issubclass(cls, base)]


def limits_network(conf) -> bool:
    return not LIMITS.keys().isdisjoint(conf.filter_scheduler.enabled_filters)


def uses_labels(conf) -> bool:
    # The filter for guest NUMA nodes, and those of all rules that exclude
    # host cells.
    names = {TOPOLOGY}.union(*(
        cls.filters for cls in rules.classes() if cls.excludes_cells))
    return not names.isdisjoint(conf.filter_scheduler.enabled_filters)


def weighs_network(conf) -> bool:
    """Return whether a weigher of network load is loaded, and not off."""
    classes, _found = _load(
        conf, 'weight_classes', nova_weights.HostWeightHandler())
    return any(cls.__name__ in classes and conf[cls.group][cls.multiplier]
               for cls in _weighers(network.NetworkLoadWeigher))


def _load(conf, option: str,
          handler) -> tuple[dict[str, str], list[findings.Finding]]:
    """Load the classes of an option, as Nova does.

    :returns: (class name -> value that offers it, a failure for each value
        that cannot be loaded)
    """
    classes: dict[str, str] = {}
    problems = []
    for name in conf.filter_scheduler[option]:
        try:
            loaded = handler.get_matching_classes([name])
        except Exception as exc:
            problems.append(findings.failure(
                f'[filter_scheduler] {option}: {name} cannot be loaded, and '
                f'nova-scheduler will not start: {strings.brief(exc)}.'))
        else:
            classes.update((cls.__name__, name) for cls in loaded
                           if inspect.isclass(cls))
    return classes, problems


def filters(conf) -> upgradecheck.Result:
    """Check that the enabled filters can be loaded and suit each other."""
    available = list(conf.filter_scheduler.available_filters)
    enabled = list(conf.filter_scheduler.enabled_filters)
    classes, problems = _load(
        conf, 'available_filters', nova_filters.HostFilterHandler())
    provided = {cls.__name__ for cls in nfv_filters.all_filters()}
    if missing := [name for name in enabled if name not in classes]:
        problems.append(_unavailable_finding(missing, available, provided))
    if not (ours := [name for name in enabled if name in provided]):
        problems.append(findings.warning(
            'No filter of nfv-sched is enabled, so its extra specs and limits '
            f'are not enforced: add {NFV_FILTERS} to [filter_scheduler] '
            'available_filters and the filters to enabled_filters.'))
    shadowed = set(conf.nfv_sched.shadow)
    counting = [name for name in enabled if name not in shadowed]
    problems += _check_combination(counting)
    problems += _check_shadow(enabled, shadowed & provided)
    off = [what for name, what in {**_specs_by_filter(), **LIMITS}.items()
           if name not in enabled]
    well = f'Enabled: {", ".join(ours)}.'
    if shadowed.intersection(ours):
        well += ' In shadow, so without effect: ' + ', '.join(
            name for name in ours if name in shadowed) + '.'
    if off:
        well += f' Not enabled, so not enforced: {", ".join(off)}.'
    if uses_labels(conf) and not scheduler.live_migration_carries_limits():
        carries = False
        with contextlib.suppress(Exception):
            carries = behaviour.live_migration_carries_limits()
        accepts = conf.nfv_sched.moves_without_limits == 'accept'
        if accepts and not carries:
            problems.append(findings.warning(
                '[nfv_sched] moves_without_limits = accept: live migrations '
                'may end against strict policies, as this Nova loses the '
                'labels (bug 2153425). Remove the option, or patch Nova.'))
        elif carries and not accepts:
            problems.append(findings.warning(
                'This Nova has a fix of bug 2153425: set [nfv_sched] '
                'moves_without_limits = accept.'))
        if not carries:
            well += (' Live migrations of servers with strict policies are '
                     'refused where they need labels: this Nova loses them '
                     '(bug 2153425).')
    return findings.conclude(problems, well)


def _unavailable_finding(missing: list[str], available: list[str],
                         nfv_filters: set[str]) -> findings.Finding:
    absent = []  # of available_filters
    if NOVA_FILTERS not in available and set(missing) - nfv_filters:
        absent.append(NOVA_FILTERS)
    if NFV_FILTERS not in available and set(missing) & nfv_filters:
        absent.append(NFV_FILTERS)
    advice = 'check the spelling'
    if absent:
        advice = 'add lines available_filters = ' + ' and '.join(absent) + (
            '; a list that is set replaces the default')
    return findings.failure(
        f'enabled_filters has {", ".join(missing)}, which available_filters '
        f'does not offer, and nova-scheduler will not start: {advice}.')


def _check_combination(enabled: list[str]) -> Iterator[findings.Finding]:
    """Warn of filters that exclude each other or need another one."""
    # Those of one policy, which pass all hosts for other servers.
    policies = [cls.filters[0] for cls in rules.classes()
                if not cls.always_active and cls.filters[0] in enabled]
    if STOCK_TOPOLOGY in enabled and (policies or TOPOLOGY in enabled):
        yield findings.failure(
            f'enabled_filters has {STOCK_TOPOLOGY} beside filters of '
            'policies. Servers with a policy find no host, as it would write '
            f'over their labels: put {TOPOLOGY} in its place.')
    elif policies and TOPOLOGY not in enabled:
        yield findings.warning(
            f'{", ".join(policies)} enabled without {TOPOLOGY}: '
            f'{_specs_by_filter()[TOPOLOGY]} is not kept, and no filter looks '
            'whether servers without a policy fit on the NUMA nodes of a '
            f'host; add {TOPOLOGY}.')
    if PCI in enabled and STOCK_PCI not in enabled:
        yield findings.warning(
            f'{PCI} is enabled without {STOCK_PCI}, so hosts without free '
            f'devices are refused by the claim only: add {STOCK_PCI}.')


def _check_shadow(enabled: list[str],
                  shadowed: set[str]) -> Iterator[findings.Finding]:
    if idle := sorted(shadowed.difference(enabled)):
        yield findings.warning(
            f'[nfv_sched] shadow has {", ".join(idle)}, which decides nothing '
            'until it is enabled: add it to [filter_scheduler] '
            'enabled_filters.')
    if TOPOLOGY in shadowed.intersection(enabled) and (
            STOCK_TOPOLOGY not in enabled):
        yield findings.warning(
            f'{TOPOLOGY} is in shadow, and no other filter looks whether '
            'servers fit on the NUMA nodes of a host: enable '
            f'{STOCK_TOPOLOGY} for as long.')


def weighers(conf) -> upgradecheck.Result:
    """Check that weighers load, and that *prefer* outweighs all others."""
    classes, problems = _load(
        conf, 'weight_classes', nova_weights.HostWeightHandler())
    shadowed = set(conf.nfv_sched.shadow)
    enabled = set(conf.filter_scheduler.enabled_filters) - shadowed
    if not any(path.startswith('nova.') for path in classes.values()):
        problems.append(findings.warning(
            f'[filter_scheduler] weight_classes lacks {NOVA_WEIGHERS}, so '
            "none of Nova's own weighers runs: add it."))
    for name, weigher in _preferences().items():
        if name not in enabled:
            continue
        key = _specs_by_filter()[name]
        if weigher.__name__ in classes:
            problems += _check_multiplier(conf, key, weigher)
        else:
            problems.append(findings.warning(
                f'{name} is enabled without {weigher.__name__}: {key}=prefer '
                f'chooses NUMA nodes, but not hosts. Add {NFV_WEIGHERS} to '
                '[filter_scheduler] weight_classes.'))
    if conf.nfv_sched[_FRAGMENTATION.multiplier] and (
            _FRAGMENTATION.__name__ not in classes):
        problems.append(findings.warning(
            f'[nfv_sched] {_FRAGMENTATION.multiplier} is set, but its '
            f'weigher is not loaded: add {NFV_WEIGHERS} to '
            '[filter_scheduler] weight_classes.'))
    ours = sorted(name for name, path in classes.items()
                  if not path.startswith('nova.'))
    if idle := sorted(shadowed.intersection(
            cls.__name__ for cls in extensions.classes('nfv_sched.weighers')
    ).difference(ours)):
        problems.append(findings.warning(
            f'[nfv_sched] shadow has {", ".join(idle)}, which weighs nothing '
            f'until it is loaded: add {NFV_WEIGHERS} to '
            '[filter_scheduler] weight_classes.'))
    well = (f'Weighers besides those of Nova: {", ".join(ours)}.' if ours else
            'Only weighers of Nova are loaded.')
    if shadowed.intersection(ours):
        well += ' In shadow, so without effect: ' + ', '.join(
            sorted(shadowed.intersection(ours))) + '.'
    return findings.conclude(problems, well)


def _check_multiplier(
    conf, key: str, weigher: type[weights_base.PreferenceWeigher],
) -> Iterator[findings.Finding]:
    """Warn of a preference's weigher that others can outweigh."""
    group, option = weigher.group, weigher.multiplier
    value = conf[group][option]
    multipliers = _other_multipliers(conf)
    most = sum(map(abs, multipliers.values()))
    if value <= 0:
        yield findings.warning(
            f'[{group}] {option} is {value:g}: {key}=prefer does not choose '
            'hosts, or avoids the right ones. Remove the option.')
    elif value <= most:
        largest = max(multipliers, key=lambda name: abs(multipliers[name]))
        yield findings.warning(
            f'[{group}] {option} is {value:g}, and the other weighers come to '
            f'{most:g} together, most of it from {largest}: {key}=prefer can '
            f'be outweighed. Set {option} above {most:g}.')


def _other_multipliers(conf) -> dict[str, float]:
    """Return multipliers of weighers that must not outweigh a preference."""
    multipliers = {
        '[metrics] weight_multiplier': conf.metrics.weight_multiplier}
    preferences = {(cls.group, cls.multiplier)
                   for cls in _preferences().values()}
    for group in ('filter_scheduler', 'nfv_sched'):
        for name in conf[group]:
            if name.endswith(_MULTIPLIER) and (
                    (group, name) not in preferences and
                    not name.startswith(_PARAMOUNT)):
                multipliers[f'[{group}] {name}'] = conf[group][name]
    return multipliers


def options(conf) -> upgradecheck.Result:
    """Check that the options of ``[nfv_sched]`` are valid and consistent."""
    (_group, all_options), = nfv_conf.list_opts()
    problems = []
    for option in all_options:
        try:
            conf.nfv_sched[option.dest]
        except (cfg.Error, ValueError) as exc:
            # Without oslo.config's introduction.
            error = strings.brief(str(exc).rpartition(' is not valid: ')[2])
            problems.append(findings.failure(
                f'[nfv_sched] {option.name}: {error}.'))
    problems += _check_names(conf, {option.dest for option in all_options})
    if not any(finding.code == upgradecheck.Code.FAILURE
               for finding in problems):
        problems += _check_consistency(conf.nfv_sched)
    return findings.conclude(
        problems, f'All {len(all_options)} options are valid.')


def _check_names(conf, option_names: set[str]) -> Iterator[findings.Finding]:
    """Warn of names in the section ``[nfv_sched]`` that are not options."""
    paths = list(conf.config_file or ())
    for directory in conf.config_dir or ():
        paths += sorted(
            entry.path for entry in os.scandir(directory)
            if entry.name.endswith('.conf') and entry.is_file())
    for path in paths:
        sections: dict = {}
        cfg.ConfigParser(path, sections).parse()
        for name in sections.get('nfv_sched', {}):
            if name.replace('-', '_') in option_names:
                continue
            near = difflib.get_close_matches(name, option_names, 1)
            yield findings.warning(
                f'[nfv_sched] {name} in {path} is not an option and has '
                'no effect' + (f': is it {near[0]}?' if near else '.'))


def _check_consistency(values) -> Iterator[findings.Finding]:
    for name in shadow.unknown(values.shadow):
        near = difflib.get_close_matches(name, sorted(shadow.known()), 1)
        yield findings.failure(
            f'[nfv_sched] shadow has {name}, which is not a filter or weigher '
            'of nfv-sched and has no effect'
            + (f': is it {near[0]}?.' if near else '.'))
    label, prefix = values.vswitch_label, values.node_label_prefix
    if rule.Names(label, prefix).node(label) is not None:
        yield findings.failure(
            f'[nfv_sched] vswitch_label={label} is also the label of a NUMA '
            f'node with node_label_prefix={prefix}: change one of them.')
    if 0 < values.vswitch_ports_per_node <= values.vswitch_physical_ports:
        yield findings.warning(
            '[nfv_sched] vswitch_ports_per_node='
            f'{values.vswitch_ports_per_node:g} leaves no port beside '
            f'vswitch_physical_ports={values.vswitch_physical_ports}: no '
            'server with a port fits on any host.')


def validators() -> upgradecheck.Result:
    """Check that the Nova API in this Python environment knows our keys."""
    from nfv_sched.scheduler import validators as nfv_validators
    ours = {validator.name for validator in nfv_validators.register()}
    try:
        nova_keys = scheduler.known_extra_specs()
    except Exception as exc:
        return findings.failure(
            'The extra-spec validators cannot be loaded, and nova-api will '
            f'not start: {strings.brief(exc)}.')
    if missing := sorted(ours - nova_keys):
        return findings.failure(
            f'Nova does not know {", ".join(missing)}, and its API refuses '
            'hw: keys among them: install nfv-sched with pip in the Python '
            'environment of nova-api, where its entry points are found.')
    return findings.success(
        f'Nova knows {len(ours)} keys of nfv-sched. This applies to this '
        'Python environment only; run the check where nova-api runs.')
