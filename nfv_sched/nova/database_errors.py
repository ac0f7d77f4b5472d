# SPDX-License-Identifier: Apache-2.0
"""Say in plain words why a database cannot be read."""

import re
import typing as ty

from oslo_db import exception as db_exception
import sqlalchemy as sa

from nfv_sched.base import connection_errors
from nfv_sched.base import strings

# Codes of MySQL and MariaDB, and SQLSTATEs of PostgreSQL.
_NO_CONNECTION = (2002, 2003)
_UNKNOWN_HOST = (2005,)
_LOST = (2006, 2013)
_REFUSED = (1045, 1698, '28000', '28P01')
_NO_DATABASE = (1049, '3D000')
_NO_RIGHT = (1044, 1142, 1143, '42501')
_NO_TABLE = (1146, '42P01')

# What SQLAlchemy appends: the query and a link.
_APPENDED = re.compile(r' (\[SQL: |\(Background on this error at: ).*')


def text(exc: Exception, noun: str, connection: str | None,
         option: str) -> str:
    """Return what is wrong with a database, and the option to mend.

    :param noun: the database, for the sentence, such as ``Nova's database``
    :param connection: its URL; no password is returned
    """
    if (problem := _problem(exc, noun, connection)) is None:
        error = strings.mask_secrets(_APPENDED.sub(
            '', ' '.join(str(exc).split()))) or type(exc).__name__
        return f'{noun} cannot be read, see {option}: {error}'
    return f'{problem}: {option}'


def _problem(exc: Exception, noun: str, connection: str | None) -> str | None:
    try:
        url = sa.engine.make_url(connection or 'sqlite://')
    except (sa.exc.ArgumentError, ValueError):
        return f'{noun} has no URL like mysql+pymysql://HOST/DATABASE'
    where = noun
    if url.host:
        where += f' at {url.host}' + (f':{url.port}' if url.port else '')
    code = _code(exc)
    for each in connection_errors.causes(exc):
        match each:
            case db_exception.DBNonExistentTable():
                return _no_table(where, url, each.table)
            case ModuleNotFoundError():
                return f'{where} needs the Python package {each.name}'
            case sa.exc.NoSuchModuleError():
                return f'{where} is of an unknown kind: {url.drivername}'
    if code in _NO_DATABASE or any(
            isinstance(each, db_exception.DBNonExistentDatabase)
            for each in connection_errors.causes(exc)):
        return f'{where} does not exist: {url.database}'
    if code in _REFUSED:
        return f'{where} does not accept the user {url.username} with this ' \
               'password'
    if code in _NO_RIGHT:
        return f'{where} does not let the user {url.username} read ' \
               f'{url.database}'
    if code in _NO_TABLE:
        return _no_table(where, url, None)
    if code in _UNKNOWN_HOST:
        return f'{where} does not answer (unknown host name)'
    if (reason := connection_errors.reason(exc)) is not None:
        return f'{where} does not answer ({reason})'
    if code in _NO_CONNECTION + _LOST or isinstance(
            exc, db_exception.DBConnectionError):
        return f'{where} does not answer'
    return None


def _no_table(where: str, url: sa.engine.URL, table: str | None) -> str:
    missing = f'the table {table}' if table else 'a table'
    return (f'{where} lacks {missing}, so {url.database or url.drivername} '
            'may be another database')


def _code(exc: Exception) -> ty.Any:
    for each in connection_errors.causes(exc):
        # PyMySQL and mysqlclient: (code, text).
        if each.args and isinstance(each.args[0], int) and not isinstance(
                each, OSError):
            return each.args[0]
        # psycopg has the one, psycopg2 the other.
        state = getattr(each, 'sqlstate', None) or getattr(
            each, 'pgcode', None)
        if state:
            return state
    return None
