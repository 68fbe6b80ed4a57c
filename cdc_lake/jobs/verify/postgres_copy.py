"""Read ranges of a table's rows on Spark's executors, by COPY at an exported snapshot, as Arrow batches."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from queue import Full, Queue

import psycopg2
import pyarrow as pa
from psycopg2 import sql
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case
from pyarrow import csv

from cdc_lake.contract.errors import SourceUnreadableError
from cdc_lake.contract.schema.transforms import hashed
from cdc_lake.contract.source.source_access import SourceAccess
from cdc_lake.jobs.verify.source_values import SelectedColumn
from cdc_lake.jobs.verify.spec import SourceTable

_CHUNK = 4 * 2**20  # bytes
_WAITING = 2  # chunks that are read ahead
_ROWS = 10_000  # per batch
_PUT_SECONDS = 0.2
# The format of values must not depend on settings of the user or the database.
_SESSION = {
    "client_encoding": "UTF8",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    # Fail if a policy hides rows from this user: they would be missing on both sides.
    "row_security": "off",
}

Range = tuple[int, int | None]
"""Pages [first, next). `next` is None for the last range: the table may have grown since its pages were counted."""


@dataclass(frozen=True)
class CopyReader:
    """A function for mapInArrow that reads a table's rows, with each column as text.

    Each input row contains an index into `ranges`. If `ranges` is empty, one statement reads the whole table.
    `condition` is a SQL condition that selects rows.
    """

    table: SourceTable
    columns: Sequence[SelectedColumn]
    ranges: Sequence[Range]
    condition: str = ""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches. Raises SourceUnreadableError."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for body in _copied(self.table, self._statement(number)):
                    yield from self._parsed(body)

    def _statement(self, number: int) -> sql.Composed:
        conditions: list[sql.Composable] = [sql.SQL(self.condition)] if self.condition else []
        if self.ranges:
            first, end = self.ranges[number]
            conditions.append(sql.SQL("ctid >= {}::tid").format(sql.Literal(f"({first},0)")))
            if end is not None:
                conditions.append(sql.SQL("ctid < {}::tid").format(sql.Literal(f"({end},0)")))
        relation = sql.SQL(self.table.relation) if self.table.relation else self._name
        return sql.SQL("copy (select {} from {} q{}) to stdout (format csv)").format(
            sql.SQL(", ").join(column.sql() for column in self.columns),
            relation,
            sql.SQL(" where ") + sql.SQL(" and ").join(conditions) if conditions else sql.SQL(""),
        )

    @property
    def _name(self) -> sql.Identifier:
        return sql.Identifier(self.table.schema, self.table.table)

    def _parsed(self, body: bytes) -> Iterator[pa.RecordBatch]:
        names = [column.alias for column in self.columns]
        read = csv.read_csv(
            pa.BufferReader(body),
            # One block: Arrow cannot read a row that crosses a block boundary.
            read_options=csv.ReadOptions(use_threads=False, block_size=len(body) + 1, column_names=names),
            parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            # COPY writes NULL as an empty field, and an empty text as a pair of quotes.
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        yield from map(self._hashed, read.to_batches(max_chunksize=_ROWS))

    def _hashed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Replace the values of hashed columns by their hashes."""
        for index, column in enumerate(self.columns):
            if column.algorithm is not None:
                salt = self.table.access.hash_salt
                values = (hashed(one, salt, column.algorithm, column.length) for one in batch.column(index).to_pylist())
                batch = batch.set_column(index, column.alias, pa.array(values, pa.string()))
        return batch


def connect(access: SourceAccess) -> Connection:
    """Open a connection that writes values in the format that source_values.py expects. Raises psycopg2.Error."""
    connection = psycopg2.connect(
        host=access.host,
        port=access.port,
        dbname=access.database,
        user=access.user,
        password=access.password,
        connect_timeout=access.connect_timeout_seconds,
        application_name="cdc-lake verify",
    )
    connection.autocommit = True
    with connection.cursor() as cursor:
        for name, value in _SESSION.items():
            cursor.execute("select set_config(%s, %s, false)", (name, value))
    return connection


def _copied(table: SourceTable, statement: sql.Composed) -> Iterator[bytes]:
    """Yield the statement's CSV in chunks of whole rows.

    A second thread reads from the server, so that reading and parsing overlap.
    """
    with _source_errors(table), closing(connect(table.access)) as connection, connection.cursor() as cursor:
        cursor.execute("begin isolation level repeatable read read only")
        cursor.execute("set transaction snapshot %s", (table.snapshot_id,))
        chunks = _Chunks()
        text = statement.as_string(connection)
        thread = threading.Thread(target=chunks.fill, args=(cursor, text), name="verify-copy", daemon=True)
        thread.start()
        try:
            yield from chunks
        finally:
            chunks.stopped.set()
            if thread.is_alive():  # the caller stopped before the last chunk
                connection.cancel()
            thread.join()


class _Chunks:
    """A bounded buffer: COPY writes rows to it, and another thread reads them in chunks."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._queue: Queue[bytes | BaseException | None] = Queue(_WAITING)
        self._rows: list[bytes] = []
        self._bytes = 0

    def fill(self, cursor: psycopg2.extensions.cursor, statement: str) -> None:
        """Run the COPY statement; its exception is raised in the thread that reads the chunks."""
        try:
            cursor.copy_expert(statement, self)
            self._flush()
            self._put(None)
        except BaseException as error:  # noqa: BLE001 - raised in the reading thread
            self._put(error)

    def write(self, row: bytes) -> None:
        """Add a row. COPY calls this once for each row, because the server sends each row in a separate message."""
        self._rows.append(row)
        self._bytes += len(row)
        if self._bytes >= _CHUNK:
            self._flush()

    def __iter__(self) -> Iterator[bytes]:
        while (found := self._queue.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found

    def _flush(self) -> None:
        if self._rows:
            self._put(b"".join(self._rows))
            self._rows.clear()
            self._bytes = 0

    def _put(self, item: bytes | BaseException | None) -> None:
        while not self.stopped.is_set():
            try:
                self._queue.put(item, timeout=_PUT_SECONDS)
            except Full:
                continue
            return
        if not isinstance(item, BaseException):
            raise InterruptedError("the reader has stopped")


@contextmanager
def _source_errors(table: SourceTable) -> Iterator[None]:
    try:
        yield
    except psycopg2.Error as error:
        reason = " ".join(str(error).split())
        raise SourceUnreadableError(
            f"Cannot read table {table.schema}.{table.table} of database {table.access.database} at "
            f"{table.access.host}:{table.access.port} at the exported snapshot: {reason}. Nothing was changed. Run "
            "this again."
        ) from error
