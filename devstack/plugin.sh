# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# The DevStack plugin nfv-sched. Sourced by stack.sh, unstack.sh and clean.sh
# with the mode and the phase as arguments.

_XTRACE_NFV_SCHED=$(set +o | grep xtrace)
set +o xtrace

# shellcheck source=devstack/lib/nova-conf
source "$NFV_SCHED_DIR/devstack/lib/nova-conf"
# shellcheck source=devstack/lib/host-numa
source "$NFV_SCHED_DIR/devstack/lib/host-numa"

# Limits of [nfv_sched]: numbers.
_NFV_SCHED_LIMITS=(
    vswitch_ports_per_node
    vswitch_physical_ports
    vnics_per_guest
    sriov_vfs_per_guest
    pci_nics_per_guest
    network_services_per_node
    security_rules_per_node
    security_rules_per_port
)

# Options of [nfv_sched] that settings named NFV_SCHED_<OPTION> give.
_NFV_SCHED_OPTIONS=(
    vswitch_label
    node_label_prefix
    "${_NFV_SCHED_LIMITS[@]}"
    expose_reasons
)

# Commands for operators.
_NFV_SCHED_COMMANDS=(nfv-sched nfv-sched-status)

# The driver of made-up compute nodes, as Nova knows it: it looks for drivers
# below nova.virt only, so that is where a link to it is.
_NFV_SCHED_FAKE_DRIVER=nfv_sched_live.LiveDriver

# Stands in placement.conf above a section that was added here.
_NFV_SCHED_PLACEMENT_MARK="# Section added by the DevStack plugin nfv-sched."

# Settings
# --------

# Print the setting of option $1 of [nfv_sched].
function _nfv_sched_setting {
    local name=NFV_SCHED_${1^^}
    echo "${!name:-}"
}

# Die if the virtual switch is said to be on a NUMA node that is not there:
# nova-compute would not start.
function _nfv_sched_check_vswitch_nodes {
    local given=$NFV_SCHED_VSWITCH_NUMA_NODES node nodes
    nodes=$(nfv_host_nodes)
    for node in ${given//,/ }; do
        # shellcheck disable=SC2086
        if ! nfv_has_word "$node" $nodes; then
            die $LINENO "NFV_SCHED_VSWITCH_NUMA_NODES=$given: this machine" \
                "has no NUMA node $node with CPUs (it has: $nodes)"
        fi
    done
}

# Die if a set of CPUs is not of this machine, or if the two have CPUs in
# common.
function _nfv_sched_check_cpu_sets {
    local dedicated=${NFV_SCHED_CPU_DEDICATED_SET/none/}
    local shared=${NFV_SCHED_CPU_SHARED_SET/none/}
    local common
    if [[ -n $dedicated ]]; then
        nfv_host_check_cpus NFV_SCHED_CPU_DEDICATED_SET "$dedicated"
    fi
    if [[ -n $shared ]]; then
        nfv_host_check_cpus NFV_SCHED_CPU_SHARED_SET "$shared"
    fi
    common=$(comm -12 <(nfv_host_expand "$dedicated" | sort) \
        <(nfv_host_expand "$shared" | sort) | paste -s -d ' ')
    if [[ -n $common ]]; then
        die $LINENO "NFV_SCHED_CPU_DEDICATED_SET=$dedicated and" \
            "NFV_SCHED_CPU_SHARED_SET=$shared have CPUs in common: $common"
    fi
}

# Die if a limit is no number.
function _nfv_sched_check_limits {
    local option value
    for option in "${_NFV_SCHED_LIMITS[@]}"; do
        value=$(_nfv_sched_setting "$option")
        if [[ ! ${value:-0} =~ ^-?[0-9]+(\.[0-9]+)?$ ]]; then
            die $LINENO "NFV_SCHED_${option^^}=$value must be a number"
        fi
    done
}

# Die if compute nodes cannot be made up, or if settings of this machine are
# given as well: the description says all that.
function _nfv_sched_check_fake_hosts {
    local name
    if [[ ! -r $NFV_SCHED_FAKE_HOSTS ]]; then
        die $LINENO "NFV_SCHED_FAKE_HOSTS: there is no file" \
            "$NFV_SCHED_FAKE_HOSTS"
    fi
    if [[ ${VIRT_DRIVER:-} != fake ]]; then
        die $LINENO "NFV_SCHED_FAKE_HOSTS needs VIRT_DRIVER=fake"
    fi
    if [[ $NFV_SCHED_VSWITCH_LABEL != nfv_vswitch || \
            $NFV_SCHED_NODE_LABEL_PREFIX != nfv_node ]]; then
        die $LINENO "NFV_SCHED_FAKE_HOSTS needs the labels nfv_vswitch and" \
            "nfv_node"
    fi
    for name in VSWITCH_NUMA_NODES CPU_DEDICATED_SET CPU_SHARED_SET; do
        name=NFV_SCHED_$name
        if [[ -n ${!name} ]]; then
            die $LINENO "$name is of this machine; with" \
                "NFV_SCHED_FAKE_HOSTS, $NFV_SCHED_FAKE_HOSTS says it"
        fi
    done
}

# Die early if the settings are wrong, and say what is wrong.
function nfv_sched_check_settings {
    local reasons=${NFV_SCHED_EXPOSE_REASONS:-none}
    if [[ $NFV_SCHED_LEDGER != placement && $NFV_SCHED_LEDGER != none ]]; then
        die $LINENO "NFV_SCHED_LEDGER=$NFV_SCHED_LEDGER must be placement" \
            "or none"
    fi
    if [[ ! $reasons =~ ^(none|policy|summary|hosts)$ ]]; then
        die $LINENO "NFV_SCHED_EXPOSE_REASONS=$reasons" \
            "must be none, policy, summary or hosts"
    fi
    _nfv_sched_check_limits
    if ! is_service_enabled n-cpu; then
        return 0
    fi
    if [[ -n $NFV_SCHED_FAKE_HOSTS ]]; then
        _nfv_sched_check_fake_hosts
    else
        _nfv_sched_check_vswitch_nodes
        _nfv_sched_check_cpu_sets
    fi
}

# Commands
# --------

# Put the commands on the path, unless pip has. DevStack's own virtual
# environment is not on it.
function link_nfv_sched_commands {
    local command link
    for command in "${_NFV_SCHED_COMMANDS[@]}"; do
        link=$NFV_SCHED_BIN_DIR/$command
        if [[ -L $link || ! -e $link ]]; then
            sudo ln -sf "$NOVA_BIN_DIR/$command" "$link"
        fi
    done
}

function unlink_nfv_sched_commands {
    local command link
    for command in "${_NFV_SCHED_COMMANDS[@]}"; do
        link=$NFV_SCHED_BIN_DIR/$command
        if [[ $(readlink "$link") == "$NOVA_BIN_DIR/$command" ]]; then
            sudo rm -f "$link"
        fi
    done
}

# Configuration
# -------------

# Enable the filters and weighers; keep all that are enabled.
function _nfv_sched_enable_filters {
    local section=filter_scheduler words
    words=$(nfv_conf_words lines $section available_filters)
    words=$(nfv_add_words "$words" \
        "nova.scheduler.filters.all_filters nfv_sched.filters.all_filters")
    nfv_conf_set_words lines $section available_filters "$words"

    words=$(nfv_conf_words list $section weight_classes)
    words=$(nfv_add_words "$words" nfv_sched.weights.all_weighers)
    nfv_conf_set_words list $section weight_classes "$words"

    words=$(nfv_conf_words list $section enabled_filters)
    # shellcheck disable=SC2086
    if nfv_has_word NFVTopologyFilter ${NFV_SCHED_FILTERS//,/ }; then
        words=$(nfv_replace_word \
            "$words" NUMATopologyFilter NFVTopologyFilter)
    fi
    words=$(nfv_add_words "$words" "${NFV_SCHED_FILTERS//,/ }")
    nfv_conf_set_words list $section enabled_filters "$words"
    # For plugins that come later, and for Tempest.
    # shellcheck disable=SC2034
    NOVA_FILTERS=${words// /,}
}

function configure_nfv_sched_scheduler {
    local option value
    _nfv_sched_enable_filters
    for option in "${_NFV_SCHED_OPTIONS[@]}"; do
        value=$(_nfv_sched_setting "$option")
        if [[ -n $value ]]; then
            nfv_conf_set nfv_sched "$option" "$value"
        fi
    done
    nfv_conf_set workarounds disable_fallback_pcpu_query \
        "$NFV_SCHED_DISABLE_FALLBACK_PCPU_QUERY"
    if ! nfv_conf_is_foreign scheduler max_attempts; then
        nfv_conf_set scheduler max_attempts 10
    fi
    if [[ $NFV_SCHED_LEDGER == placement ]] && \
            ! is_service_enabled nfv-sched-ledger; then
        warn $LINENO "The service nfv-sched-ledger is disabled here: run it \
on another node, or set NFV_SCHED_LEDGER=none"
    fi
}

# The conductors of cells count attempts. DevStack makes their files anew in
# every run of stack.sh.
function configure_nfv_sched_conductors {
    local number value
    value=$(iniget "$NOVA_CONF" scheduler max_attempts)
    for number in $(seq 1 "${NOVA_NUM_CELLS:-1}"); do
        iniset "$(conductor_conf "$number")" scheduler max_attempts \
            "${value:-10}"
    done
}

# Declare labels for the NUMA nodes of this machine.
function _nfv_sched_label_nodes {
    local label=$NFV_SCHED_VSWITCH_LABEL
    local section=neutron_physnet_$label
    local node nodes words
    nodes=$(nfv_host_nodes)
    words=$(nfv_conf_words list neutron physnets)
    words=$(nfv_add_words "$words" "$label")
    for node in $nodes; do
        words=$(nfv_add_words "$words" "$NFV_SCHED_NODE_LABEL_PREFIX$node")
    done
    nfv_conf_set_words list neutron physnets "$words"

    if [[ -n $NFV_SCHED_VSWITCH_NUMA_NODES ]]; then
        nfv_conf_set "$section" numa_nodes "$NFV_SCHED_VSWITCH_NUMA_NODES"
    elif ! nfv_conf_is_foreign "$section" numa_nodes; then
        nfv_conf_set "$section" numa_nodes "${nodes%% *}"
    fi
    for node in $nodes; do
        section=neutron_physnet_$NFV_SCHED_NODE_LABEL_PREFIX$node
        nfv_conf_set "$section" numa_nodes "$node"
    done
}

# Divide the CPUs of this machine into halves, unless that has been done.
function _nfv_sched_halve_cpus {
    local dedicated
    if nfv_conf_is_foreign compute cpu_dedicated_set ||
            nfv_conf_is_foreign compute cpu_shared_set; then
        return 0
    fi
    dedicated=$(nfv_host_half dedicated)
    if [[ -z $dedicated ]]; then
        warn $LINENO "No NUMA node of this machine has two cores: there will \
be no dedicated CPUs, and no pinned servers"
        return 0
    fi
    nfv_conf_set compute cpu_dedicated_set "$dedicated"
    nfv_conf_set compute cpu_shared_set "$(nfv_host_half shared)"
}

function _nfv_sched_divide_cpus {
    local option value
    if [[ -z $NFV_SCHED_CPU_DEDICATED_SET$NFV_SCHED_CPU_SHARED_SET ]]; then
        _nfv_sched_halve_cpus
        return 0
    fi
    for option in cpu_dedicated_set cpu_shared_set; do
        value=$(_nfv_sched_setting "$option")
        if [[ -n $value && $value != none ]]; then
            nfv_conf_set compute "$option" "$value"
        fi
    done
}

# Whether the compute nodes of this machine are made up.
function _nfv_sched_is_fake {
    is_service_enabled n-cpu && [[ -n $NFV_SCHED_FAKE_HOSTS ]]
}

# Give each nova-compute that DevStack will start its description, in its own
# state directory. DevStack makes that, too, but for root.
function configure_nfv_sched_fake_hosts {
    local number name
    local -a names=()
    for (( number = 1; number <= NUMBER_FAKE_NOVA_COMPUTE; number++ )); do
        name=$HOSTNAME$number
        sudo install -d -o "$STACK_USER" "$NOVA_STATE_PATH" \
            "$NOVA_STATE_PATH/$name"
        names+=("$name")
    done
    "$NOVA_BIN_DIR/python3" "$NFV_SCHED_DIR/devstack/lib/fake_hosts.py" \
        "$NFV_SCHED_FAKE_HOSTS" "$NOVA_STATE_PATH" "${names[@]}" ||
        die $LINENO "NFV_SCHED_FAKE_HOSTS=$NFV_SCHED_FAKE_HOSTS cannot be used"
    ln -sf "$NFV_SCHED_DIR/nfv_sched/tests/live/bed/virt/live.py" \
        "$NOVA_DIR/nova/virt/${_NFV_SCHED_FAKE_DRIVER%.*}.py"
    nfv_conf_set DEFAULT compute_driver "$_NFV_SCHED_FAKE_DRIVER"
}

function cleanup_nfv_sched_fake_hosts {
    rm -f "$NOVA_DIR/nova/virt/${_NFV_SCHED_FAKE_DRIVER%.*}.py"
}

# nova-compute reads a copy of nova.conf that DevStack makes when it starts it.
function configure_nfv_sched_compute {
    if _nfv_sched_is_fake; then
        configure_nfv_sched_fake_hosts
    else
        _nfv_sched_label_nodes
        _nfv_sched_divide_cpus
    fi
}

function configure_nfv_sched {
    # DevStack writes [neutron] of the same file in the background until then.
    async_wait configure_neutron_nova
    nfv_conf_begin
    if is_service_enabled n-sch; then
        configure_nfv_sched_scheduler
    fi
    if is_service_enabled n-cond; then
        configure_nfv_sched_conductors
    fi
    if is_service_enabled n-cpu; then
        configure_nfv_sched_compute
    fi
}

# With more, Placement grants more than there is when several claims come at
# once; see the documentation of the ledger. DevStack makes placement.conf anew
# in every run of stack.sh.
function configure_nfv_sched_placement {
    if ! grep -qs "^\[placement\]" "$PLACEMENT_CONF"; then
        printf '\n%s\n[placement]\n' "$_NFV_SCHED_PLACEMENT_MARK" \
            >> "$PLACEMENT_CONF"
    fi
    iniset "$PLACEMENT_CONF" placement allocation_conflict_retry_count 1
}

function cleanup_nfv_sched_placement {
    local mark=$_NFV_SCHED_PLACEMENT_MARK
    if [[ ! -e ${PLACEMENT_CONF:-} ]]; then
        return 0
    fi
    inidelete "$PLACEMENT_CONF" placement allocation_conflict_retry_count
    if grep -qxF "$mark" "$PLACEMENT_CONF"; then
        sed -i -e "/^$mark$/d" "$PLACEMENT_CONF"
        nfv_conf_drop_section "$PLACEMENT_CONF" placement
    fi
}

# Run
# ---

# The section [[post-config|$NOVA_CONF]] of local.conf is merged into nova.conf
# after the plugins have written to it.
function nfv_sched_check_filters {
    local missing
    missing=$(nfv_drop_words "${NFV_SCHED_FILTERS//,/ }" \
        "$(nfv_conf_words list filter_scheduler enabled_filters)")
    if [[ -n $missing ]]; then
        warn $LINENO "These filters are not enabled: $missing. Something has \
replaced [filter_scheduler] enabled_filters since the plugin nfv-sched wrote \
it. If it is [[post-config|\$NOVA_CONF]] in local.conf, take the option out \
there and name your filters in NFV_SCHED_FILTERS"
    fi
}

# Likewise for nova-compute, which also reads [[post-config|$NOVA_CPU_CONF]].
function nfv_sched_check_labels {
    local physnets
    physnets=$(iniget "$(_nfv_sched_compute_conf)" neutron physnets)
    # shellcheck disable=SC2086
    if ! nfv_has_word "$NFV_SCHED_VSWITCH_LABEL" ${physnets//,/ }; then
        warn $LINENO "This compute node has no label \
$NFV_SCHED_VSWITCH_LABEL. Something has replaced [neutron] physnets since the \
plugin nfv-sched wrote it. If it is local.conf, add there what the plugin \
would have written"
    fi
}

# Print the file that nova-compute reads.
function _nfv_sched_compute_conf {
    if [[ -e ${NOVA_CPU_CONF:-} ]]; then
        echo "$NOVA_CPU_CONF"
    else
        echo "$NOVA_CONF"
    fi
}

function start_nfv_sched_ledger {
    if is_service_enabled nfv-sched-ledger &&
            [[ $NFV_SCHED_LEDGER == placement ]]; then
        echo_summary "Starting nfv-sched-ledger"
        run_process nfv-sched-ledger \
            "$NOVA_BIN_DIR/nfv-sched-ledger --config-file $NOVA_CONF"
    fi
}

# The command line client, with a microversion at which Nova validates extra
# specs.
function _nfv_sched_openstack {
    openstack --os-cloud devstack-admin --os-region-name "$REGION_NAME" \
        --os-compute-api-version 2.86 "$@"
}

# Create flavor $1 with $2 vCPUs and the remaining arguments as extra specs, or
# give it those. $_nfv_sched_flavors are the flavors that there are.
function _nfv_sched_flavor {
    local name=$1 vcpus=$2 property
    local -a properties=()
    shift 2
    for property in "$@"; do
        properties+=(--property "$property")
    done
    if grep -qxF "$name" <<< "$_nfv_sched_flavors"; then
        _nfv_sched_openstack flavor set "${properties[@]}" "$name"
    else
        _nfv_sched_openstack flavor create --vcpus "$vcpus" --ram 512 \
            --disk 1 "${properties[@]}" "$name"
    fi
}

function create_nfv_sched_flavors {
    local _nfv_sched_flavors
    _nfv_sched_flavors=$(_nfv_sched_openstack flavor list --all \
        -f value -c Name)
    _nfv_sched_flavor nfv.vswitch-strict 1 \
        hw:cpu_policy=dedicated nfv:vswitch_numa_affinity=strict
    _nfv_sched_flavor nfv.vswitch-prefer 1 \
        hw:cpu_policy=dedicated nfv:vswitch_numa_affinity=prefer
    _nfv_sched_flavor nfv.pci-strict 1 \
        hw:cpu_policy=dedicated nfv:pci_numa_affinity=strict
    _nfv_sched_flavor nfv.pci-prefer 1 \
        hw:cpu_policy=dedicated nfv:pci_numa_affinity=prefer
    _nfv_sched_flavor nfv.shared-vcpu 2 \
        hw:cpu_policy=mixed hw:cpu_dedicated_mask=^0 nfv:shared_vcpu=0
    _nfv_sched_flavor nfv.node0 1 \
        hw:cpu_policy=dedicated nfv:numa_node.0=0
    _nfv_sched_flavor nfv.two-nodes 2 \
        hw:cpu_policy=dedicated hw:numa_nodes=2 \
        nfv:vswitch_numa_affinity=strict
}

# Tempest
# -------

# Print True if each NUMA node of this machine has two dedicated CPUs.
function _nfv_sched_has_dedicated_cpus {
    local dedicated node count
    dedicated=$(nfv_host_expand \
        "$(iniget "$(_nfv_sched_compute_conf)" compute cpu_dedicated_set)")
    for node in $(nfv_host_nodes); do
        count=$(comm -12 <(sort <<< "$dedicated") \
            <(nfv_host_node_cpus "$node" | sort) | wc -w)
        if [[ $count -lt 2 ]]; then
            echo False
            return
        fi
    done
    echo True
}

# Describe the compute nodes to Tempest: all are taken to be like this one.
function _nfv_sched_describe_compute {
    local section=neutron_physnet_$NFV_SCHED_VSWITCH_LABEL
    local conf vswitch shared=False
    conf=$(_nfv_sched_compute_conf)
    vswitch=$(iniget "$conf" "$section" numa_nodes)
    if [[ -n $(iniget "$conf" compute cpu_shared_set) ]]; then
        shared=True
    fi
    iniset "$TEMPEST_CONFIG" nfv_sched numa_nodes "*:$(nfv_host_nodes | wc -w)"
    iniset "$TEMPEST_CONFIG" nfv_sched vswitch_nodes "*:${vswitch//,/+}"
    iniset "$TEMPEST_CONFIG" nfv_sched node_labels True
    iniset "$TEMPEST_CONFIG" nfv_sched dedicated_cpus \
        "$(_nfv_sched_has_dedicated_cpus)"
    iniset "$TEMPEST_CONFIG" nfv_sched shared_cpus "$shared"
}

function configure_nfv_sched_tempest {
    local words value ledger=False
    words=$(nfv_conf_words list filter_scheduler enabled_filters)
    iniset "$TEMPEST_CONFIG" compute-feature-enabled \
        scheduler_enabled_filters "${words// /,}"
    iniset "$TEMPEST_CONFIG" service_available nfv_sched True
    iniset "$TEMPEST_CONFIG" nfv_sched enabled_filters "${words// /,}"
    if [[ $NFV_SCHED_LEDGER == placement ]]; then
        ledger=True
    fi
    iniset "$TEMPEST_CONFIG" nfv_sched ledger "$ledger"
    value=$(iniget "$NOVA_CONF" nfv_sched expose_reasons)
    if [[ -n $value ]]; then
        iniset "$TEMPEST_CONFIG" nfv_sched expose_reasons "$value"
    fi
    # Any number to Nova, none below 0 to Tempest; neither limits at 0.
    value=$(iniget "$NOVA_CONF" nfv_sched vnics_per_guest)
    if [[ $value == -* ]]; then
        value=0
    fi
    if [[ -n $value ]]; then
        iniset "$TEMPEST_CONFIG" nfv_sched vnics_per_guest "${value%%.*}"
    fi
    if is_service_enabled n-cpu && ! _nfv_sched_is_fake; then
        _nfv_sched_describe_compute
    fi
}

# Phases
# ------

case "${1:-}/${2:-}" in
    stack/pre-install)
        nfv_sched_check_settings
        ;;
    stack/install)
        if is_service_enabled n-sch n-api; then
            echo_summary "Installing nfv-sched"
            setup_develop "$NFV_SCHED_DIR" ops
            link_nfv_sched_commands
        elif _nfv_sched_is_fake; then
            # The driver is a part of it.
            setup_develop "$NFV_SCHED_DIR"
        fi
        ;;
    stack/post-config)
        if is_service_enabled n-sch n-cpu; then
            echo_summary "Configuring nfv-sched"
            configure_nfv_sched
        fi
        if is_service_enabled placement-api &&
                [[ $NFV_SCHED_LEDGER == placement ]]; then
            configure_nfv_sched_placement
        fi
        ;;
    stack/extra)
        if is_service_enabled n-sch; then
            nfv_sched_check_filters
            start_nfv_sched_ledger
        fi
        if is_service_enabled n-cpu && ! _nfv_sched_is_fake; then
            nfv_sched_check_labels
        fi
        if is_service_enabled n-api && [[ $NFV_SCHED_FLAVORS == True ]]; then
            echo_summary "Creating flavors of nfv-sched"
            create_nfv_sched_flavors
        fi
        ;;
    stack/test-config)
        if is_service_enabled tempest && is_service_enabled n-sch &&
                [[ $NFV_SCHED_TEMPEST == True ]]; then
            echo_summary "Configuring Tempest for nfv-sched"
            configure_nfv_sched_tempest
        fi
        ;;
    unstack/)
        stop_process nfv-sched-ledger
        ;;
    clean/)
        nfv_conf_undo
        cleanup_nfv_sched_placement
        unlink_nfv_sched_commands
        cleanup_nfv_sched_fake_hosts
        ;;
esac

$_XTRACE_NFV_SCHED
