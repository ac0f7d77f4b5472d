# SPDX-License-Identifier: Apache-2.0
"""The live test bed: an OpenStack cloud of many processes on one machine.

It is brought up by ``python -m nfv_sched.tests.live.bed up``; tests use
:class:`Bed`.
"""

from nfv_sched.tests.live.bed.bed import Bed
from nfv_sched.tests.live.bed.errors import BedError

__all__ = ['Bed', 'BedError']
