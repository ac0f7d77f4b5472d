#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""Starts the command ``nfv-sched``, if its libraries are installed."""

import importlib.util
import sys

#: Modules of the extra ``ops`` in setup.cfg.
MODULES = ('bcrypt', 'cliff', 'jinja2', 'jsonschema', 'markupsafe',
           'oslo_serialization', 'prometheus_client', 'pydantic',
           'pydantic_core', 'rich', 'yaml')


def main() -> int:
    """Run the command with the arguments of the process.

    :returns: exit code
    """
    missing = [name for name in MODULES if not importlib.util.find_spec(name)]
    if missing:
        sys.stderr.write(
            f'error: {", ".join(missing)} not found; install the tools with: '
            "pip install 'nfv-sched[ops]'\n")
        return 1
    from nfv_sched.ops.cli import base
    return base.main()
