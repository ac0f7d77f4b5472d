# SPDX-License-Identifier: Apache-2.0
"""Define the errors that end a command, without a traceback."""


class CommandError(Exception):
    """Each line of the message is printed as an error."""

    #: True if what was meant may be in a part of the cloud that was not read.
    may_be_unread = False


class CloudUnreadError(CommandError):
    """The cloud cannot be read at all; the message says why."""


class NotConfiguredError(CloudUnreadError):
    """No configuration file names a database of Nova."""


class UsageError(CommandError):
    """The command line is wrong; the message says why."""


class NotInCloudError(UsageError):
    """The cloud, as far as it was read, lacks what the command line names."""

    may_be_unread = True
