"""Sessions with a PostgreSQL server, and what its failures mean, told without a word of the server's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from synth_audit.errors import DataError, Unavailable
from synth_audit.plugins.source import ConnectionSpec
from synth_audit.sources._files import library

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Cursor

_DEFAULTS = {"connect_timeout": "10", "application_name": "synth-audit"}

_READ_ONLY = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
"""One snapshot for all that is asked of it; nothing can be changed."""

_LOCKED = ("55P03", "40001", "40P01")
_LOST = ("57P01", "57P02", "57P03", "57P05")
_LOST_WORDS = ("server closed", "terminat", "connection reset", "no connection", "timed out", "broken pipe")
_MEANINGS = {
    "42P01": ("there is no such table", "names are taken as they stand, capital letters too"),
    "3F000": ("there is no such schema", "names are taken as they stand, capital letters too"),
    "42703": ("a column is not there", "correct the query, or see who changed the table"),
    "42501": (
        "this user lacks a privilege",
        "to read takes USAGE on the schema and SELECT on the table; to release, CREATE on the schema and to "
        "own the table that is replaced",
    ),
    "25006": ("the query would write, and the session only reads", "give a SELECT without side effects"),
    "42601": ("the query is not one SELECT", "try it in psql, without a semicolon"),
    "57014": ("the server ended the query", "see its statement_timeout, and who ended it"),
    "53100": ("the server's disk is full", "free space there; what was there before is untouched"),
    "53300": ("the server takes no more sessions", "run again later"),
    "22021": ("text holds a character that PostgreSQL cannot store", "leave out the character NUL"),
    "2BP01": (
        "something depends on the version before",
        "drop what depends on it, then release again",
    ),
}
_REFUSALS = (
    (
        "password authentication failed",
        "user or password is wrong",
        "check both, and the variable",
    ),
    ("no password supplied", "the server asks for a password", "name its variable under `secrets`"),
    ("pg_hba.conf", "the server lets this user in from nowhere or not from here", "ask who runs the server"),
    ("invalid connection option", "an option is none of PostgreSQL's", "see libpq's connection parameters"),
    ("certificate", "the server's certificate does not hold", "check `sslrootcert` and `sslmode`"),
    ("does not exist", "user or database do not exist there", "check `user` and `dbname`"),
)


@contextmanager
def session(connection: ConnectionSpec, wait: float, where: str, *, read_only: bool) -> Iterator[Cursor]:
    """A cursor within one transaction, which is rolled back unless the block commits it.

    Args:
        wait: seconds that a lock is waited for.
        where: what is read or written, for messages.

    Raises:
        Unavailable: the server does not answer, ends the session, or a lock is not free in time.
        DataError: it lets nobody in under these settings, or refuses what is asked.
        PlanError: a secret is not set, or the driver is not installed.
    """
    opened = _connected(connection)
    try:
        with opened.cursor() as cursor, explained(where):
            if read_only:
                cursor.execute(_READ_ONLY)
            cursor.execute("SET LOCAL TimeZone = 'UTC'")
            cursor.execute(f"SET LOCAL lock_timeout = {max(1, round(wait * 1000))}")
            yield cursor
    finally:
        with suppress(Exception):  # of a session that is lost; what it had begun the server rolls back
            opened.rollback()
        with suppress(Exception):
            opened.close()


def _connected(connection: ConnectionSpec) -> Any:
    dbapi = library(
        "adbc_driver_postgresql.dbapi",
        "the driver of PostgreSQL",
        extra="warehouse",
        where="source or release, postgres",
        expected="the packages of the extra `warehouse`",
    )
    settings = connection.settings()
    quoted = {k: v.replace("\\", "\\\\").replace("'", "\\'") for k, v in {**_DEFAULTS, **settings}.items()}
    # What libpq connects to: a whole `uri`, or each option quoted.
    address = settings.get("uri") or " ".join(f"{name}='{value}'" for name, value in quoted.items())
    try:
        return dbapi.connect(address)
    except dbapi.Error as error:
        raise _not_let_in(str(error)) from None


def _not_let_in(text: str) -> DataError:
    """Which of the known refusals it is; the text itself names users and hosts."""
    for words, what, fix in _REFUSALS:
        if words in text:
            return DataError(
                f"no session with PostgreSQL: {what}",
                where="connections",
                expected="a server, database and user that go together",
                fix=fix,
            )
    return Unavailable(
        "no session with PostgreSQL: the server cannot be reached, or does not answer",
        where="connections",
        expected="a server that answers at this host and port",
        fix="check `host`, `port` and the network; run again when it is up",
    )


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Say what the server's refusals mean; its own words may quote cells, queries or users."""
    from adbc_driver_manager import Error
    from pyarrow import ArrowException

    try:
        yield
    except (Error, OSError, ArrowException) as error:
        raise meaning(error, where) from None


def meaning(error: BaseException, where: str) -> DataError:
    """The project's own error for one of the driver's."""
    state, text = getattr(error, "sqlstate", None) or "", str(error).lower()
    if state in _LOCKED or "lock timeout" in text:
        return Unavailable(
            "a table is locked by another session",
            where=where,
            expected="a lock that is free in time; see `wait`",
            fix="run again when the other session has ended; nothing was changed",
        )
    if state in _LOST or state.startswith("08") or any(words in text for words in _LOST_WORDS):
        return Unavailable(
            "the server ended the session or cannot be reached any more",
            where=where,
            expected="a session that lasts",
            fix="run again when the server is up; nothing was changed",
        )
    what, fix = _MEANINGS.get(state, ("PostgreSQL refuses it", "try it in psql as the same user"))
    return DataError(
        f"{what} ({state or type(error).__name__})",
        where=where,
        expected="an existing table of plain columns that this user may use",
        fix=fix,
    )
