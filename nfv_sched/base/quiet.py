# SPDX-License-Identifier: Apache-2.0
"""Suppress library warnings and logs in the output of commands."""

from collections.abc import Iterator
import contextlib
import logging
import sys
import warnings

#: Loggers of errors that the command itself reports, in one line.
_LOGGERS = ('nova', 'oslo_config', 'oslo_db', 'keystoneauth')


@contextlib.contextmanager
def warnings_ignored() -> Iterator[None]:
    """Ignore warnings, as at Nova's import, unless ``python -W`` is set."""
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter('ignore')
        yield


@contextlib.contextmanager
def logs_ignored() -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for logger in map(logging.getLogger, _LOGGERS):
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL + 1)
        yield
