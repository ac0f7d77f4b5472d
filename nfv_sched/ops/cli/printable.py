# SPDX-License-Identifier: Apache-2.0
"""Output that does nothing to the terminal but show text.

See :func:`nfv_sched.strings.visible`; here is where it is used for all that a
command writes to standard output and standard error, its log included.
"""

from collections.abc import Iterable
import logging
import typing as ty

from nfv_sched import strings


class _Printable:
    """A stream that escapes what a terminal does not show.

    :param stream: where the rest goes
    """

    def __init__(self, stream: ty.Any):
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text."""
        return self._stream.write(strings.visible(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write pieces of text."""
        self._stream.writelines(map(strings.visible, lines))

    def __getattr__(self, name: str) -> ty.Any:
        return getattr(self._stream, name)


def protect(app: ty.Any) -> None:
    """Have a program write nothing but text from now on.

    :param app: the cliff application
    """
    for name in ('stdout', 'stderr'):
        stream = getattr(app, name)
        if not isinstance(stream, _Printable):
            setattr(app, name, _Printable(stream))
    for handler in logging.getLogger().handlers:
        # Not of a subclass: those write to files.
        if type(handler) is logging.StreamHandler and not isinstance(
                handler.stream, _Printable):
            handler.setStream(_Printable(handler.stream))
