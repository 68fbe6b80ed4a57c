"""Queries for polled tables: the bound of transactions, sequences, indexes, time zones, columns of a SELECT, rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from psycopg2 import Error, sql
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.errors import AccessRefused, QueryRejected, ResourceError
from resources.postgres.table_columns import KINDS, TypeKind
from resources.postgres.table_queries import table_oid

MARGIN_SECONDS = 1
"""The bound is at least this long before the current time. A session sets its transaction's start, which now() returns,
shortly before other sessions see it as xact_start. The margin covers an interruption of this length in between."""
# Autovacuum workers and walsenders write no rows. Nor do Debezium and our own readers; their sessions are recognised by
# role and name.
_ACTIVITY = """
select statement_timestamp() - make_interval(secs => %(margin)s), min(xact_start),
       (array_agg(concat_ws(', ', 'pid ' || pid, usename, application_name, state) order by xact_start))[1],
       bool_or(state = 'disabled')
  from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid()
   and backend_type not in ('autovacuum worker', 'walsender')
   and not (usename = %(capture_role)s and starts_with(application_name, 'Debezium '))
   and not (usename = session_user and application_name in ('cdc-lake poll', 'cdc-lake verify'))
   and (xact_start is not null or state = 'disabled')
"""
_PREPARED = "select gid from pg_prepared_xacts where database = current_database() order by prepared limit 1"


@dataclass(frozen=True)
class TransactionsBound:
    """A time `at`: every transaction of the database that began earlier has ended or is prepared.

    `held_back_by` is the session whose open transaction sets the bound (its pid, user, application and state), None if
    there is no such session. `prepared` is the id of a prepared transaction, whose start is unknown.
    """

    at: datetime
    held_back_by: str | None
    prepared: str | None


@dataclass(frozen=True)
class SequenceState:
    """The sequence of a column: its name, the last value that it has returned, and when that was read.

    `ordered` is false if a session can get a smaller value later: CACHE over 1, CYCLE, or a negative increment.
    """

    name: str
    last_value: int | None
    read_at: datetime
    ordered: bool


@dataclass(frozen=True)
class QueryColumn:
    """A column of a query's result; domains are resolved, as in PostgreSQL's protocol."""

    name: str
    type_name: str
    kind: TypeKind
    """The kind of the type, or of an array's elements."""


def transactions_bound(connection: Connection, capture_role: str) -> TransactionsBound:
    """Return the bound of the transactions of the connection's database.

    `capture_role` is the role that Debezium signs in as. A session of it was idle in a transaction for three minutes in
    a test.

    The connection must be in autocommit. Sessions are read before prepared transactions, so that a transaction that is
    prepared in between is in both results.

    Raises:
        AccessRefused: the user cannot see the transactions of other users.
        ResourceError: the server is a standby, or a session does not report its transactions.
    """
    with connection.cursor() as cursor:
        cursor.execute("select pg_is_in_recovery(), pg_has_role('pg_read_all_stats', 'usage'), current_user")
        standby, sees_all, user = cursor.fetchone() or (True, False, "")
        if standby:
            raise ResourceError(
                f"Cannot poll database {connection.info.dbname}: the server is a standby, which does not show "
                "the transactions of the primary.",
                "Use the address of the primary.",
            )
        if not sees_all:
            raise AccessRefused(
                f"Cannot poll database {connection.info.dbname}: user {user} cannot see when the transactions of "
                "other users began, so a poll would miss rows that are committed late.",
                f'As a superuser, run GRANT pg_read_all_stats TO "{user}".',
            )
        cursor.execute(_ACTIVITY, {"margin": MARGIN_SECONDS, "capture_role": capture_role})
        recent, oldest, session, hidden = cursor.fetchone() or (None, None, None, None)
        if hidden:
            raise ResourceError(
                f"Cannot poll database {connection.info.dbname}: the setting track_activities is off in a session, "
                "which therefore does not show when its transaction began.",
                "Set track_activities to on for every user and database.",
            )
        cursor.execute(_PREPARED)
        prepared = cursor.fetchone()
    if recent is None:
        raise RuntimeError("pg_stat_activity returned no row")
    is_held = oldest is not None and oldest < recent
    return TransactionsBound(
        at=oldest if is_held else recent,
        held_back_by=session if is_held else None,
        prepared=None if prepared is None else prepared[0],
    )


def sequence(connection: Connection, schema: str, table: str, column: str) -> SequenceState | None:
    """Return the state of the sequence that a column owns (serial or identity); None if it owns none.

    The time is read after the value: a transaction with an id up to the value began before that time.

    Raises:
        AccessRefused: the user may not read the sequence; PostgreSQL would return NULL, as for one that was never used.
    """
    with connection.cursor() as cursor:
        cursor.execute("select pg_get_serial_sequence(format('%%I.%%I', %s, %s), %s)", (schema, table, column))
        [name] = cursor.fetchone() or (None,)
        if name is None:
            return None
        cursor.execute("select has_sequence_privilege(%s, 'usage, select'), current_user", (name,))
        allowed, user = cursor.fetchone() or (False, "")
        if not allowed:
            raise AccessRefused(
                f"Cannot poll table {schema}.{table} of database {connection.info.dbname}: user {user} may not read "
                f"sequence {name} of its column {column}.",
                f'As its owner, run GRANT SELECT ON SEQUENCE {name} TO "{user}".',
            )
        cursor.execute(
            "select seqcache = 1 and not seqcycle and seqincrement > 0, pg_sequence_last_value(seqrelid)"
            " from pg_sequence where seqrelid = %s::regclass",
            (name,),
        )
        ordered, last_value = cursor.fetchone() or (False, None)
        cursor.execute("select clock_timestamp()")
        [read_at] = cursor.fetchone() or (None,)
    if read_at is None:
        raise RuntimeError("PostgreSQL returned no time")
    return SequenceState(name, last_value, read_at, ordered)


def has_index(connection: Connection, schema: str, table: str, column: str) -> bool:
    """Return whether an index finds ranges of the column: a valid B-tree or BRIN, not partial, that begins with it."""
    return _exists(
        connection,
        "select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]"
        " join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam and m.amname in ('btree', 'brin')"
        " where i.indrelid = %s and i.indisvalid and i.indpred is null and a.attname = %s",
        table_oid(connection, schema, table),
        column,
    )


def has_unique_key(connection: Connection, schema: str, table: str, key: Collection[str]) -> bool:
    """Return whether a primary key or unique index prevents two rows with the same values in these columns."""
    return _exists(
        connection,
        "select from pg_index i where i.indrelid = %s and i.indisunique and i.indisvalid and i.indpred is null"
        " and i.indexprs is null and not exists (select from unnest(i.indkey::int2[]) with ordinality k(attnum, place)"
        " join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum"
        " where k.place <= i.indnkeyatts and not (a.attname = any (%s) and a.attnotnull))",
        table_oid(connection, schema, table),
        list(key),
    )


def has_offset_changes(connection: Connection, zone: str) -> bool:
    """Return whether a time zone's offset from UTC changes between one year ago and ten years from now.

    Raises ResourceError if the server has no such time zone.
    """
    with connection.cursor() as cursor:
        cursor.execute("select exists (select from pg_timezone_names where name = %s)", (zone,))
        if cursor.fetchone() != (True,):
            raise ResourceError(
                f"Cannot use time zone {zone!r}: the server does not have it.", "Choose one of pg_timezone_names."
            )
        cursor.execute(
            "select count(distinct (at at time zone %s) - (at at time zone 'UTC')) > 1"
            " from generate_series(now() - interval '1 year', now() + interval '10 years', interval '1 day') at",
            (zone,),
        )
        return cursor.fetchone() == (True,)


@contextmanager
def _rejections() -> Iterator[None]:
    """Raise QueryRejected for an error that PostgreSQL reports."""
    try:
        yield
    except Error as error:
        raise QueryRejected(error.diag.message_primary or str(error).strip(), error.diag.message_hint or "") from error


@_rejections()
def query_columns(connection: Connection, query: str) -> tuple[QueryColumn, ...]:
    """Return the columns of a SELECT in their order; reads no rows. Raises QueryRejected."""
    found = []
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("select * from ({}) q limit 0").format(sql.SQL(query.replace("%", "%%"))), ())
        described = cursor.description or ()
        for column in described:
            cursor.execute(
                "select format_type(case when a.listed then t.typelem else t.oid end,"
                " case when a.listed or t.typlen <> -1 then null else %(modifier)s::int end)"
                " || case when a.listed then '[]' else '' end, coalesce(e.typtype, t.typtype)"
                " from pg_type t cross join lateral (select t.typcategory = 'A' and t.typlen = -1) a(listed)"
                " left join pg_type e on a.listed and e.oid = t.typelem where t.oid = %(oid)s",
                {"oid": column.type_code, "modifier": _modifier(column.internal_size, column.precision, column.scale)},
            )
            type_name, typtype = cursor.fetchone() or ("unknown", "p")
            found.append(QueryColumn(column.name, type_name, KINDS[typtype]))
    return tuple(found)


def _modifier(size: int | None, precision: int | None, scale: int | None) -> int:
    """Return libpq's type modifier, from which psycopg2 has subtracted the length word of 4 bytes."""
    if precision is not None and 0 < precision <= 1000:
        return ((precision << 16) | (scale or 0)) + 4
    return size + 4 if precision is None and size is not None and size > 0 else -1


@_rejections()
def finds_row(connection: Connection, relation: str, condition: str) -> bool:
    """Return whether a row of a table or query (SQL for FROM; its alias is q) meets the condition.

    Raises QueryRejected.
    """
    _read_all_rows(connection)
    return _exists(connection, f"select from {relation} q where {condition}".replace("%", "%%"))


@_rejections()
def count(connection: Connection, relation: str) -> int:
    """Return the number of rows of a table or query (SQL for FROM; its alias is q). Raises QueryRejected."""
    _read_all_rows(connection)
    with connection.cursor() as cursor:
        cursor.execute(f"select count(*) from {relation} q")  # noqa: S608 - trusted SQL
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _read_all_rows(connection: Connection) -> None:
    """Let later statements of the session fail if a policy of row-level security would hide rows from them."""
    with connection.cursor() as cursor:
        cursor.execute("set row_security to off")


def _exists(connection: Connection, query: str, *values: object) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"select exists ({query})", values)
        return cursor.fetchone() == (True,)
