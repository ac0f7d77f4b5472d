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
"""Output format ``commands``: what to run, a line each."""

from cliff.formatters import base

#: The format, and the formats of commands that plan.
NAME = 'commands'
NAMESPACE = 'nfv_sched.formatter.plan'


class Commands(base.ListFormatter):
    """Prints the first column, without its name."""

    def add_argument_group(self, parser):
        """There are no options; called by cliff."""

    def emit_list(self, column_names, data, stdout, parsed_args):
        """Print the rows; called by cliff."""
        for row in data:
            stdout.write(f'{row[0]}\n')
