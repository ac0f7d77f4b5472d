# SPDX-License-Identifier: Apache-2.0

"""What the tests of one process need to do only once.

Each test has databases, services and an API of its own.  What is made on the
way and is the same every time is kept: the SQL of the statements, the
connections to a database for as long as it is there, and the garbage
collector's knowledge that what was imported stays.
"""

import functools
import gc

import fixtures
import jsonschema
from oslo_utils import versionutils
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite import pysqlite
from sqlalchemy import pool

#: Engines of the test that runs, with connections that are kept.
_ENGINES: list = []

#: Compiled statements, as SQLAlchemy keeps them for an engine.
_STATEMENTS: dict = {}


class SQLite(pysqlite.dialect):
    """The dialect of all databases, which are alike.

    SQLAlchemy compiles a statement once for each engine and dialect object,
    and Nova's fixtures make new ones for every test: a sixth of a test's time
    went into statements that the one before had compiled already.
    """

    supports_statement_cache = True

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))

    @classmethod
    def engine_created(cls, engine):
        super().engine_created(engine)
        engine.update_execution_options(compiled_cache=_STATEMENTS)
        if isinstance(engine.pool, pool.NullPool):
            # For a database in a file oslo.db opens a connection for each
            # transaction, which then reads the whole schema.
            kept = engine.pool
            engine.pool = pool.QueuePool(
                kept._creator, pool_size=20, max_overflow=-1,
                _dispatch=kept.dispatch, dialect=kept._dialect)
            _ENGINES.append(engine)


def share_statements():
    """Let all engines that are made from now on share their statements."""
    registry.register('sqlite', __name__, SQLite.__name__)


@functools.cache
def keep_what_is_there():
    """Tell the garbage collector not to look at the present objects again.

    They are those of Nova's modules and never go away.  By default all of
    them are looked at several times in each test.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20000, 10, 10)


@functools.cache
def repeat_no_answers():
    """Work out once what Nova and Placement ask for again and again.

    Placement checks the schema of a query with every request, and objects
    take their version apart whenever they are serialized.
    """
    check = jsonschema.Draft202012Validator.check_schema
    checked = {}

    def check_once(schema, *args, **kwargs):
        if id(schema) not in checked:
            check(schema, *args, **kwargs)
            # Kept, so that no other gets its identity.
            checked[id(schema)] = schema

    jsonschema.Draft202012Validator.check_schema = check_once
    versionutils.convert_version_to_tuple = functools.cache(
        versionutils.convert_version_to_tuple)


class Connections(fixtures.Fixture):
    """Connections that are kept are closed when the test ends."""

    def _setUp(self):
        self.addCleanup(self._close)

    @staticmethod
    def _close():
        while _ENGINES:
            _ENGINES.pop().dispose()


class PatientThreads(fixtures.Fixture):
    """Idle threads of Nova's pools look rarely whether they are to end.

    Nova's test case makes them look every 10 ms, so that pools end quickly.
    There are some forty of them, which takes a twentieth of a core.
    """

    def _setUp(self):
        self.useFixture(fixtures.MonkeyPatch(
            'futurist._thread.ThreadWorker.MAX_IDLE_FOR', 0.2))
