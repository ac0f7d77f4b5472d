# SPDX-License-Identifier: Apache-2.0
"""Choose between native threads and eventlet before Nova does.

Call one of the functions before anything else of Nova is imported: it is
decided once for a process.
"""

from collections.abc import Iterator
import contextlib
import logging
import os
import sys

# Nova reads it when it is about to patch Python's modules.
_NATIVE = 'OS_NOVA_DISABLE_EVENTLET_PATCHING'


def native_threads() -> None:
    """Keep Nova from patching Python's modules, unless that is done."""
    # NOTE: Up to Nova 31 importing nova.api.openstack, or with it the
    # validators of extra specs, patches the process; from commit 659710a626
    # (Nova 32) on it calls nova.monkey_patch.patch(), which also selects a
    # backend of oslo.service and fails if there is another. A command has
    # imported urllib3 and others by then, so that only part of it would use
    # eventlet. Not needed from commit 0afb72e883 (Nova 33) on, where only
    # Nova's own commands do that.
    if not is_patched():
        os.environ[_NATIVE] = 'true'
        _select_threading()


def service() -> None:
    """Prepare for oslo.service, with eventlet where it knows nothing else."""
    # NOTE: oslo.service has no native threads before 4.2 (Nova 32).
    if _select_threading():
        native_threads()
        return
    with _silence():  # that oslo.log, as in Nova, has been imported before
        import nova.monkey_patch  # noqa: F401


def is_patched() -> bool:
    patcher = sys.modules.get('eventlet.patcher')
    return patcher is not None and patcher.is_monkey_patched('thread')


def _select_threading() -> bool:
    """Make oslo.service use native threads; return whether it can.

    A program that embeds the simulator may have selected another backend.
    """
    with _silence():  # oslo.service 4.1 knows the name, but lacks the module
        try:
            from oslo_service import backend
            backend.init_backend(backend.BackendType.THREADING)
            return True
        except Exception:
            return False


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Drop all logs, which nobody has set up yet."""
    disabled = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(disabled)
