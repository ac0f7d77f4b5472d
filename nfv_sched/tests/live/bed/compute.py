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
"""nova-compute with the driver of the bed.

Usage: python -m nfv_sched.tests.live.bed.compute --config-file FILE
"""

import pathlib
import sys

# First, as it chooses how the process does several things at a time.
from nova.cmd import compute
import nova.virt


def main():
    """Run nova-compute."""
    nova.virt.__path__.append(str(pathlib.Path(__file__).parent / 'virt'))
    return compute.main()


if __name__ == '__main__':
    sys.exit(main())
