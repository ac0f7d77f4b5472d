# SPDX-License-Identifier: Apache-2.0
"""Keep what the libraries say to themselves out of what a command prints."""

from collections.abc import Iterator
import contextlib
import logging
import sys
import warnings

#: Loggers of what a command tells itself, in a line, if it fails.
_LOGGERS = ('nova', 'oslo_config', 'oslo_db', 'keystoneauth')


@contextlib.contextmanager
def warnings_ignored() -> Iterator[None]:
    """Ignore Python's warnings, unless ``python -W`` says otherwise.

    Nova's libraries warn of what they will change one day, of Eventlet above
    all: first when they are imported.
    """
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter('ignore')
        yield


@contextlib.contextmanager
def logs_ignored() -> Iterator[None]:
    """Log nothing of what Nova and its libraries do."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        # Above the highest that there is.
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before):
            logger.setLevel(level)
