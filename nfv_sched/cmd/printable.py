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
"""Output that does nothing to the terminal but show text.

Names and messages are of others: tenants name servers, a file may have been
edited.  An escape sequence in one is not to reach the terminal.
"""

import re
import typing as ty

# Control characters but tab and line feed, those that turn the direction of
# writing, and halves of characters, which cannot be written.
_HARMFUL = re.compile(
    '[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e'
    '\u2066-\u2069\ud800-\udfff]')
_INSTEAD = '\ufffd'


class _Printable:
    """A stream that shows characters that do more as such.

    :param stream: where the rest goes
    """

    def __init__(self, stream: ty.Any):
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text."""
        return self._stream.write(_HARMFUL.sub(_INSTEAD, text))

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
