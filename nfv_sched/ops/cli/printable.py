# SPDX-License-Identifier: Apache-2.0
"""Escape everything in the output that a terminal would not show as text.

This applies :func:`nfv_sched.base.strings.visible` to all that a command
writes to standard output and standard error, its log included.
"""

from collections.abc import Iterable
import logging
import typing as ty

from nfv_sched.base import strings


class _Printable:
    """A stream that escapes characters that a terminal does not show."""

    def __init__(self, stream: ty.Any):
        self._stream = stream

    def write(self, text: str) -> int:
        return self.write_escaped(strings.visible(text))

    def write_escaped(self, text: str) -> int:
        """Write text that was escaped before its colors were added."""
        return self._stream.write(self._encodable(text))

    def _encodable(self, text: str) -> str:
        encoding = getattr(self._stream, 'encoding', None)
        if not encoding or text.isascii():
            return text
        try:
            text.encode(encoding, self._stream.errors or 'strict')
        except UnicodeEncodeError:
            return text.replace('\u2500', '-').encode(
                encoding, 'replace').decode(encoding)
        return text

    def writelines(self, lines: Iterable[str]) -> None:
        for text in lines:
            self.write(text)

    def __getattr__(self, name: str) -> ty.Any:
        return getattr(self._stream, name)


def protect(app: ty.Any) -> None:
    """Make a cliff application write only visible text from now on."""
    for name in ('stdout', 'stderr'):
        stream = getattr(app, name)
        if not isinstance(stream, _Printable):
            setattr(app, name, _Printable(stream))
    for handler in logging.getLogger().handlers:
        # Not its subclasses: they write to files.
        if type(handler) is logging.StreamHandler and not isinstance(
                handler.stream, _Printable):
            handler.setStream(_Printable(handler.stream))
