"""The source side of a polled table: its rows as SQL, the bound of a window, and the checks of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.source.poll_state import Bound
from cdc_lake.contract.source.polled_rows import PolledRows, quoted
from cdc_lake.contract.source.source_access import SourceAccess
from cdc_lake.pipeline.pipeline import SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.spec.field_types import repeated
from resources.errors import QueryRejected
from resources.postgres.polling import QueryColumn
from resources.waiting import until

_ZONED, _UNZONED = "timestamp with time zone", "timestamp without time zone"
_NUMBERS = ("smallint", "integer", "bigint")


def access(postgres: SourcePostgres, *, hashes: bool = False) -> SourceAccess:
    """Return the address and credentials of the source for a job, with the salt if the job computes hashes.

    Raises ResourceError if the deployment has no salt.
    """
    login, salt = postgres.login(), postgres.salt() if hashes else ""
    return SourceAccess(login.host, login.port, postgres.database, login.user, login.password, salt)


def rows(table: PipelineTable) -> PolledRows:
    """Return what is polled for a table: the relation, and its timestamp and incrementing columns."""
    poll = table.poll
    relation = f"{quoted(table.pipeline.spec.source.schema_)}.{quoted(table.polled_table)}"
    if poll.sql:
        relation = f"({query(table)})"
    return PolledRows(relation, poll.timestamp, poll.time_zone, poll.incrementing, divisible=not poll.sql)


def delete_finder(table: PipelineTable) -> str:
    """Return the name of the asset that finds the deletes of a polled table."""
    return f"{table.in_reconciled_target.key('lake').path[-1]}_reconcile"


def query(table: PipelineTable) -> str:
    """Return the text of the table's SELECT. Raises ContractError if the file does not exist."""
    return table.pipeline.sql(table.poll.sql, "tables.poll.sql")


def table_columns(table: PipelineTable) -> dict[str, str | None]:
    """Return the column of the polled table for each polled column; None if the SELECT computes it.

    A column that sqlglot does not find in the SELECT, for example because of `*`, counts as one of the same name.
    Raises what query() raises.
    """
    columns: dict[str, str | None] = {name: name for name in (table.poll.timestamp, table.poll.incrementing) if name}
    if not table.poll.sql:
        return columns
    try:
        parsed = normalize_identifiers(sqlglot.parse_one(query(table), dialect="postgres"), dialect="postgres")
    except SqlglotError:
        return columns
    selected = {each.alias_or_name: each.unalias() for each in parsed.selects} if isinstance(parsed, exp.Query) else {}
    for name in columns.keys() & selected.keys():
        columns[name] = selected[name].name if isinstance(selected[name], exp.Column) else None
    return columns


def query_columns(table: PipelineTable, postgres: SourcePostgres) -> tuple[QueryColumn, ...]:
    """Return the columns of the table's SELECT. Raises ContractError if PostgreSQL rejects it."""
    with _rejections(table):
        return postgres.query_columns(query(table))


def count(table: PipelineTable, postgres: SourcePostgres) -> int:
    """Return the number of rows. Raises ContractError if PostgreSQL does not let the login read them all."""
    with _rejections(table):
        return postgres.count(rows(table).relation)


def finds_row(table: PipelineTable, postgres: SourcePostgres, condition: str) -> bool:
    """Return whether a row meets a condition of PolledRows. Raises what count() raises."""
    with _rejections(table):
        return postgres.finds_row(rows(table).relation, condition)


@contextmanager
def _rejections(table: PipelineTable) -> Iterator[None]:
    """Raise ContractError for an error that PostgreSQL reports about the table or its SELECT."""
    try:
        yield
    except QueryRejected as error:
        advice = f"Correct {table.poll.sql}, or grant" if table.poll.sql else "Grant"
        raise ContractError(
            f"{_cannot_poll(table)}: PostgreSQL reports: {error.user_message.rstrip('.')}. {advice} the login what it "
            "needs."
        ) from error


def _cannot_poll(table: PipelineTable) -> str:
    """Return the beginning of an error about a polled table."""
    polled = table.poll.sql or f"table {table.pipeline.spec.source.schema_}.{table.polled_table}"
    return f"Cannot poll {polled} for {table.name}"


def bound(table: PipelineTable, postgres: SourcePostgres, last: Bound | None) -> Bound:
    """Return the bound of the next window; `last` is the bound of the previous one.

    The ids that a sequence has returned are settled when all transactions have ended that began before the sequence was
    read. Rows with an incrementing column are therefore polled one poll later than they are committed. While a
    transaction is prepared, returns `last`; before the first poll, raises ContractError. Raises what the resource
    raises.
    """
    # Read before the transactions: every transaction that has one of its values began earlier.
    sequence = None
    if table.poll.incrementing:
        schema = table.pipeline.spec.source.schema_
        sequence = postgres.sequence(schema, table.polled_table, table.poll.incrementing)
    found = postgres.transactions_bound()
    if found.prepared is not None:
        if last is None:
            raise ContractError(
                f"Cannot begin to poll table {table.polled_table}: transaction {found.prepared!r} is prepared, and it "
                "is not known when it began. COMMIT PREPARED or ROLLBACK PREPARED it, then run this again."
            )
        return last
    at = found.at if last is None else max(found.at, last.at)
    if sequence is None:
        return Bound(at=at)
    if last is None or last.next_id_at is None:
        return Bound(at=at, next_id=sequence.last_value, next_id_at=sequence.read_at)
    if at <= last.next_id_at:
        return last.model_copy(update={"at": at})
    return Bound(at=at, last_id=last.next_id, next_id=sequence.last_value, next_id_at=sequence.read_at)


def await_visible(table: PipelineTable, postgres: SourcePostgres, seconds: float) -> None:
    """Wait until a poll by time sees everything that is committed now; rows by id need one more poll.

    A transaction that is open, and a prepared one, delay it. Raises WaitTimedOut, and what
    Postgres.transactions_bound() raises.
    """
    with postgres.connect() as connection, connection.cursor() as cursor:
        cursor.execute("select clock_timestamp()")
        [committed] = cursor.fetchone() or (None,)
    until(
        postgres.transactions_bound,
        lambda found: found.prepared is None and committed is not None and found.at > committed,
        seconds=seconds,
        what=f"polls of table {table.polled_table} to see changes that were committed at {committed}",
        state=lambda found: f"{found.at}, held back by {found.prepared or found.held_back_by or 'no session'}",
        hint="End the session that holds it back, if it stays.",
    )


def require_pollable(table: PipelineTable, postgres: SourcePostgres, columns: Sequence[Column]) -> None:
    """Raise ContractError if the polled columns do not show every change, or if the key is not unique."""
    by_name = {column.name: column for column in columns}
    poll, schema = table.poll, table.pipeline.spec.source.schema_
    what = _cannot_poll(table)
    if twice := repeated(column.name for column in columns):
        raise ContractError(
            f"{what}: several of its columns have the same name: {', '.join(twice)}. Give each column another name."
        )
    wanted = [*table.spec.key, *table.spec.partition_by, *filter(None, (poll.timestamp, poll.incrementing))]
    if lacking := [name for name in wanted if name not in by_name]:
        raise ContractError(
            f"{what}: it has no column {', '.join(lacking)}. Its columns are {', '.join(by_name)}. Correct the YAML of "
            f"{table.pipeline.name}, or the query."
        )
    if poll.timestamp:
        _require_timestamp(table, postgres, by_name[poll.timestamp], what)
    if poll.incrementing:
        _require_sequence(table, postgres, by_name[poll.incrementing], what)
    if not poll.sql and not postgres.has_unique_key(schema, table.polled_table, table.spec.key):
        raise ContractError(
            f"{what}: no primary key or unique index on columns that are NOT NULL makes key "
            f"[{', '.join(table.spec.key)}] unique. Name other columns in the YAML of {table.pipeline.name}, or create "
            "a unique index."
        )


def require_times(table: PipelineTable, postgres: SourcePostgres) -> None:
    """Raise ContractError if a row of the SELECT has no time, so that no poll would read it.

    The column of a table is checked in the catalog. Raises what count() raises.
    """
    if table.poll.sql and table.poll.mode == "timestamp":
        time = quoted(table.poll.timestamp)
        if finds_row(table, postgres, f"q.{time} is null"):
            raise ContractError(
                f"{_cannot_poll(table)}: column {table.poll.timestamp} is NULL in some of its rows, which no poll "
                "would read. Select another time for these rows, such as coalesce() of the times of both tables."
            )


def _require_timestamp(table: PipelineTable, postgres: SourcePostgres, column: Column, what: str) -> None:
    zone = table.poll.time_zone
    if column.base not in (_ZONED, _UNZONED):
        raise ContractError(f"{what}: column {column.name} is of type {column.type}. Name a timestamp column.")
    if column.arguments:
        raise ContractError(
            f"{what}: column {column.name} is of type {column.type}, whose precision can round a time to before its "
            f"transaction began, so that a poll misses the row. Change its type to {column.base}."
        )
    if (column.base == _UNZONED) != bool(zone):
        raise ContractError(
            f"{what}: column {column.name} is a {column.base}: "
            + (
                "remove poll.time_zone."
                if zone
                else "name the TimeZone of the sessions that write it as poll.time_zone, such as UTC."
            )
        )
    if zone and postgres.has_offset_changes(zone):
        raise ContractError(
            f"{what}: the offset of time zone {zone} changes, so that the times in column {column.name} go back by an "
            "hour once a year, and rows would be missed. Use timestamp with time zone, or write the column in UTC."
        )
    if table.poll.mode == "timestamp" and column.nullable and not table.poll.sql:
        raise ContractError(
            f"{what}: column {column.name} may be NULL, and such rows would be missed. Make it NOT NULL, or use mode "
            "timestamp_and_incrementing if it is NULL until the first update."
        )


def _require_sequence(table: PipelineTable, postgres: SourcePostgres, column: Column, what: str) -> None:
    schema = table.pipeline.spec.source.schema_
    found = postgres.sequence(schema, table.polled_table, column.name)
    if column.base not in _NUMBERS or found is None:
        raise ContractError(
            f"{what}: column {column.name} of {schema}.{table.polled_table} owns no sequence, which shows the ids of "
            "open transactions. Name a serial or identity column."
        )
    if not found.ordered:
        raise ContractError(
            f"{what}: sequence {found.name} has CACHE over 1, CYCLE or a negative increment, so that a later row can "
            f"have a smaller id. ALTER SEQUENCE {found.name} NO CYCLE CACHE 1 INCREMENT 1."
        )
