# shellcheck shell=bash
# Functions shared by tools/bootstrap and .ci/run. To be sourced by bash, with
# ROOT set to the top of the source tree.
#
# SPDX-License-Identifier: Apache-2.0

say() {
    printf '==> %s\n' "$*" >&2
}

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# pip in a virtual environment, told nothing it does not need.
export PIP_DISABLE_PIP_VERSION_CHECK=1
export PIP_NO_INPUT=1
unset PYTHONHOME PYTHONPATH

# Print the path of a Python 3.11 or newer: $PYTHON if it is set, else
# python3, else the first of the versions that nfv-sched is tested with.
find_python() {
    local name path names='python3 python3.11 python3.12 python3.13 python3.14'
    for name in ${PYTHON:-$names}; do
        path=$(command -v "$name" 2>/dev/null) || continue
        if "$path" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
                2>/dev/null; then
            "$path" -c 'import sys; print(sys.executable)'
            return 0
        fi
    done
    if [ -n "${PYTHON:-}" ]; then
        die "PYTHON=$PYTHON is not Python 3.11 or newer"
    fi
    die 'no Python 3.11 or newer found; install it, or set PYTHON to its path'
}

# Install what Python $1 lacks to make virtual environments, which some
# distributions package apart from it.
install_venv_package() {
    local python=$1 version
    version=$("$python" -c \
        'import sys; print("%d.%d" % sys.version_info[:2])')
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        say "Installing python$version-venv, which this Python lacks"
        apt-get update -qq &&
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
                --no-install-recommends "python$version-venv" >&2 &&
            return 0
    fi
    die "$python cannot create virtual environments with pip; install the" \
        "distribution's venv package (Debian, Ubuntu: apt-get install" \
        "python$version-venv) and try again"
}

# Create the virtual environment $1 unless it is there and works.
make_venv() {
    local venv=$1 python
    if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        return 0
    fi
    rm -rf "$venv"
    python=$(find_python)
    say "Creating ${venv#"$ROOT/"} with $python"
    mkdir -p "$(dirname "$venv")"
    "$python" -c 'import ensurepip' 2>/dev/null ||
        install_venv_package "$python"
    "$python" -m venv "$venv" || {
        rm -rf "$venv"
        die "$python cannot create the virtual environment $venv"
    }
}

# Print the name of release $1 of OpenStack, which may be given as the number of
# its Nova. Files and environments of the newest have no name in theirs: for it
# nothing is printed.
release_name() {
    case $1 in
        29 | 2024.1) echo 2024.1 ;;
        31 | 2025.1) echo 2025.1 ;;
        32 | 2025.2) echo 2025.2 ;;
        33 | 2026.1) echo 2026.1 ;;
        34 | 2026.2) ;;
        *)
            die "nfv-sched does not support OpenStack $1, only 2024.1" \
                "(Nova 29), 2025.1 (31), 2025.2 (32), 2026.1 (33) and" \
                "2026.2 (34)"
            ;;
    esac
}

# Print a hash of the files that say what is installed, constraints file $2
# among them, and of the Python of virtual environment $1.
install_hash() {
    local venv=$1 constraints=$2
    {
        "$venv/bin/python" -VV
        cd "$ROOT" || exit
        cat "$constraints" requirements.txt test-requirements.txt \
            setup.cfg setup.py pyproject.toml
    } | sha256sum | cut -d' ' -f1
}

# Print the totals of the last stestr run in $ROOT as "passed failed skipped",
# and a line for each failed test.
# $1 is a directory of programs, stestr among them; $2 what run_number said
# before the run. A run that left no record has run nothing.
run_totals() {
    if [ "$(run_number)" -gt "$2" ]; then
        (cd "$ROOT" && "$1/stestr" last --subunit || true) |
            "$1/python" "$ROOT/tools/test_totals.py"
    else
        echo 0 0 0
    fi
}

# How many runs stestr has recorded in $ROOT.
run_number() {
    cat "$ROOT/.stestr/next-stream" 2>/dev/null || echo 0
}
