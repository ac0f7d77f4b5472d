# SPDX-License-Identifier: Apache-2.0
"""Commands run in this process."""

import csv
import functools
import io
import json
import os
import re
from unittest import mock

import fixtures

from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.ops.simulator import progress
from nfv_sched.tests import base


def cells(out: str) -> list[list[str]]:
    """Return the titles and rows of a table that has nothing after it."""
    titles, _rule, *rows = out.splitlines()
    return [re.split('  +', line.strip()) for line in (titles, *rows)]


def live(read):
    """Return the fixture of a live cloud, which a function reads."""
    return fixtures.MockPatchObject(source, 'reader', lambda _arguments: read)


class CommandTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        for name in ('COLUMNS', 'CLIFF_MAX_TERM_WIDTH', 'CLIFF_FIT_WIDTH',
                     'NO_COLOR'):
            self.useFixture(fixtures.EnvironmentVariable(name))
        # The command sets up logging for the whole process.
        self.useFixture(fixtures.MockPatchObject(
            cli_base.NFVSched, 'configure_logging'))
        # However long it takes here.
        self.useFixture(fixtures.MockPatchObject(
            progress, 'DELAY', float('inf')))

    def run_command(self, *args: str) -> tuple[int, str, str]:
        """Run a command; return exit code, standard output and error."""
        out = io.TextIOWrapper(io.BytesIO(), 'utf-8', newline='')
        err = io.StringIO()
        with mock.patch('sys.stdout', out), mock.patch('sys.stderr', err):
            code = cli_base.main(args)
        out.flush()
        self.assertNotIn('Traceback', err.getvalue())
        return code, out.buffer.getvalue().decode(), err.getvalue()

    def exits(self, code: int, *args: str) -> tuple[str, str]:
        """Run a command that exits so; return standard output and error."""
        actual, out, err = self.run_command(*args)
        self.assertEqual(code, actual, out + err)
        return out, err

    def shown(self, *args: str, code: int = 0) -> str:
        """Run a command that prints no errors; return what it prints."""
        out, err = self.exits(code, *args)
        self.assertEqual('', err, out)
        return out

    def refused(self, text: str, *args: str, code: int = 2) -> str:
        """Run a command that prints nothing but errors; return these."""
        out, err = self.exits(code, *args)
        self.assertEqual('', out, err)
        self.assertIn('error: ', err)
        self.assertIn(text, err)
        return err

    @functools.cached_property
    def folder(self) -> str:
        return self.useFixture(fixtures.TempDir()).path

    def in_folder(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def write_file(self, name: str, content: str | bytes | dict) -> str:
        """Write a file that no other user reads; return its path.

        :param content: what is neither text nor bytes is written as JSON
        """
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str)
                       else json.dumps(content)).encode()
        path = self.in_folder(name)
        with open(path, 'wb') as stream:
            stream.write(content)
        os.chmod(path, 0o600)
        return path

    def save_cloud(self, cloud: snapshot.Cloud) -> str:
        """Save a cloud; return the path of the file, always the same."""
        path = self.in_folder('cloud')
        file.save(cloud, path)
        return path

    def csv_rows(self, out: str) -> list[dict[str, int | str]]:
        """Return the rows of CSV, with whole numbers as such."""
        rows = list(csv.DictReader(io.StringIO(out, newline='')))
        self.assertEqual(len(rows), max(len(out.splitlines()), 1) - 1)
        return [{key: int(value) if value.isdecimal() else value
                 for key, value in row.items()} for row in rows]
