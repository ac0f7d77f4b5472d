# SPDX-License-Identifier: Apache-2.0
"""Start the command ``nfv-sched`` if its libraries are installed."""

import importlib.util
import sys

#: Modules of the extra ``ops`` in setup.cfg that have to be there.
MODULES = ('bcrypt', 'cliff', 'highspy', 'jinja2', 'markupsafe',
           'oslo_serialization', 'prometheus_client', 'pydantic',
           'pydantic_core', 'rich', 'yaml')


def main() -> int:
    missing = [name for name in MODULES if not importlib.util.find_spec(name)]
    if missing:
        sys.stderr.write(
            f'error: {", ".join(missing)} not found; install the tools in '
            "a clone of nfv-sched: pip install '.[ops]'\n")
        return 1
    from nfv_sched.ops.cli import base
    return base.main()
