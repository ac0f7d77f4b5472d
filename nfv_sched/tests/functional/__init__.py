# SPDX-License-Identifier: Apache-2.0

"""Tests on a real Nova and a real Placement, both in this process.

Nova's services run on native threads, as they do since 2026.1 when nothing
else is configured; only the fixtures of Nova 33 still want eventlet.  That is
decided once, before anything else of Nova is imported, so these tests cannot
share a process with the unit tests.
"""

from importlib import metadata
import logging
import os

#: Major version of Nova.
NOVA = int(metadata.version('nova').partition('.')[0])
#: Whether Nova's services use native threads, not green ones of eventlet.
NATIVE_THREADS = NOVA >= 34

if NATIVE_THREADS:
    os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')

from nova import monkey_patch  # noqa: E402

# NOTE: Nova up to 31 patches when it is imported.
if hasattr(monkey_patch, 'patch'):
    monkey_patch.patch()

from nova import test  # noqa: E402,F401

# NOTE: A service of Nova 34 ends all pools of threads when it stops, for good
# and in a thread of its own. Nova's fixture prevents it only until the test
# ends: if that thread is late, no later test of the process has a pool.
try:
    from nova import thread_pool_factory
except ImportError:
    pass
else:
    thread_pool_factory.shutdown_all_executors = lambda: None

# Importing it makes oslo.log write to the standard output, among the results
# of the tests.  Fixtures keep the log of each test.
logging.getLogger().handlers.clear()
