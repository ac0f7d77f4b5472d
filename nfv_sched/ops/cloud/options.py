# SPDX-License-Identifier: Apache-2.0
"""List the options that a snapshot or a cloud file may set.

Files come from other machines.  Only options for scheduling are taken from
them, never one that names a file, a service or an account.
:mod:`nfv_sched.ops.simulator.configuration` decides which filter and weigher
classes are loaded.
"""

from collections.abc import Mapping
import typing as ty

from nfv_sched.base import conf

#: Section -> options that are saved in a snapshot.  All weight multipliers and
#: the options of section ``nfv_sched`` are saved, too.
SAVED: Mapping[str, tuple[str, ...]] = {
    'DEFAULT': (
        'cpu_allocation_ratio', 'ram_allocation_ratio',
        'disk_allocation_ratio', 'initial_cpu_allocation_ratio',
        'initial_ram_allocation_ratio', 'initial_disk_allocation_ratio',
        'default_availability_zone', 'default_schedule_zone'),
    'compute': ('packing_host_numa_cells_allocation_strategy',),
    'filter_scheduler': (
        'enabled_filters', 'available_filters', 'weight_classes',
        'host_subset_size', 'max_io_ops_per_host',
        'max_instances_per_host', 'pci_in_placement',
        'shuffle_best_same_weighed_hosts',
        'image_properties_default_architecture',
        'aggregate_image_properties_isolation_namespace',
        'aggregate_image_properties_isolation_separator',
        'isolated_hosts', 'isolated_images',
        'restrict_isolated_hosts_to_isolated_images',
        'image_props_weight_setting'),
    'pci': ('alias',),
    'scheduler': (
        'max_placement_results', 'max_attempts',
        'limit_tenants_to_placement_aggregate',
        'placement_aggregate_required_for_tenants',
        'query_placement_for_image_type_support',
        'query_placement_for_routed_network_aggregates',
        'enable_isolated_aggregate_filtering',
        'image_metadata_prefilter'),
    'workarounds': ('disable_fallback_pcpu_query',),
}
MULTIPLIER = '_weight_multiplier'

#: Values of ``[filter_scheduler]`` options that every installation supports.
STANDARD_CLASSES: Mapping[str, tuple[str, ...]] = {
    'available_filters': ('nova.scheduler.filters.all_filters',
                          'nfv_sched.filters.all_filters'),
    'weight_classes': ('nova.scheduler.weights.all_weighers',
                       'nfv_sched.weights.all_weighers')}

# Further options that a file may set for the simulator.
_MORE: Mapping[str, tuple[str, ...]] = {
    'filter_scheduler': ('track_instance_changes',),
    'metrics': ('weight_multiplier', 'weight_setting', 'required',
                'weight_of_unavailable'),
    'pci': ('report_in_placement',),
}

# Options of section nfv_sched that concern this machine: files on its disk,
# and accounts.
_OF_MACHINE = conf.OF_COMMANDS | {
    'decision_journal', 'decision_journal_placed', 'decision_journal_size'}


def may_be_set(section: str, name: str) -> bool:
    if section == conf.GROUP.name:
        return name not in _OF_MACHINE
    return (name in SAVED.get(section, ()) or name in _MORE.get(section, ())
            or name.endswith(MULTIPLIER))


def class_names(options: Mapping[str, Mapping[str, ty.Any]],
                option: str) -> list[str]:
    value = options.get('filter_scheduler', {}).get(option)
    if isinstance(value, str):
        value = [name.strip() for name in value.split(',')]
    return ([name for name in value if isinstance(name, str)]
            if isinstance(value, (list, tuple)) else [])


def only_standard_classes(options: Mapping[str, Mapping[str, ty.Any]]) -> bool:
    return all(set(names).issuperset(class_names(options, option))
               for option, names in STANDARD_CLASSES.items())
