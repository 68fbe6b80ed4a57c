"""COPY's CSV to Arrow, with a fake server; NULL and '' stay distinct."""

from __future__ import annotations

import csv
import hashlib
import io
import threading
from collections.abc import Iterator
from dataclasses import replace

import psycopg2
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg2 import sql

from cdc_lake.contract.errors import SourceUnreadableError
from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.schema.transforms import Masking
from cdc_lake.jobs.verify import SourceAccess, SourceTable, postgres_copy
from cdc_lake.jobs.verify.postgres_copy import CopyReader
from cdc_lake.jobs.verify.source_values import SelectedColumn, selected_column

ACCESS = SourceAccess("nowhere", 1, "devdb", "me", "s3cret")
TABLE = SourceTable(ACCESS, "1-1", "public", "orders", None)
Row = tuple[str | None, ...]


def reader(columns: int) -> CopyReader:
    return CopyReader(TABLE, [SelectedColumn(f"c{n}", "{0}", f"column {n}") for n in range(columns)], [])


def copy_csv(rows: list[Row]) -> bytes:
    """Return rows as COPY … CSV writes them: NULL as nothing, '' as a pair of quotes."""

    def cell(value: str | None) -> str:
        if value is None:
            return ""
        bare = value and not any(sign in value for sign in ',"\r\n') and value != "\\."
        return value if bare else '"' + value.replace('"', '""') + '"'

    return "".join(",".join(map(cell, row)) + "\n" for row in rows).encode()


Texts = st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
Tricky = st.sampled_from(
    [None, "", "NULL", "\\N", "\\.", '"', '""', ",", "\n", "\r\n", "a\nb", " ", "ß🦆", "null", "#", "0"]
)
Rows = st.integers(1, 4).flatmap(lambda n: st.lists(st.tuples(*[Texts | Tricky] * n), min_size=1, max_size=12))


@given(Rows)
def test_csv_of_copy_is_read_back(rows: list[Row]) -> None:
    width = len(rows[0])
    read = [tuple(row.values()) for batch in reader(width)._parsed(copy_csv(rows)) for row in batch.to_pylist()]
    assert read == rows


def test_a_row_larger_than_a_block_is_read() -> None:
    rows: list[Row] = [("x" * 20_000_000, None), ("", "y")]
    read = [tuple(row.values()) for batch in reader(2)._parsed(copy_csv(rows)) for row in batch.to_pylist()]
    assert read == rows


def test_copy_csv_writes_valid_csv() -> None:
    (row,) = csv.reader(io.StringIO(copy_csv([('a"b', "c,d")]).decode()))
    assert row == ['a"b', "c,d"]


class FakeServer:
    """Sends rows one by one, then raises the error, if any."""

    def __init__(self, rows: int, error: Exception | None = None) -> None:
        self.rows, self.error = rows, error
        self.sent = 0

    def copy_expert(self, _statement: str, into: postgres_copy._Chunks) -> None:
        for number in range(self.rows):
            into.write(b"%d,%s\n" % (number, b"x" * 1000))
            self.sent += 1
        if self.error is not None:
            raise self.error


def start_filling(server: FakeServer) -> tuple[postgres_copy._Chunks, threading.Thread]:
    chunks = postgres_copy._Chunks()
    thread = threading.Thread(target=chunks.fill, args=(server, "copy"), daemon=True)
    thread.start()
    return chunks, thread


def test_chunks_end_with_rows() -> None:
    chunks, thread = start_filling(FakeServer(20_000))
    bodies = list(chunks)
    thread.join()
    assert len(bodies) > 3
    assert all(body.endswith(b"\n") for body in bodies)
    assert b"".join(bodies).count(b"\n") == 20_000


def test_a_late_error_of_the_server_is_raised_to_the_reader() -> None:
    chunks, thread = start_filling(FakeServer(10, psycopg2.OperationalError("canceling statement due to a conflict")))
    with pytest.raises(psycopg2.OperationalError, match="conflict"):
        list(chunks)
    thread.join()


def test_a_stopped_reader_ends_the_writer_thread() -> None:
    server = FakeServer(10_000_000)
    chunks, thread = start_filling(server)
    next(iter(chunks))
    chunks.stopped.set()
    thread.join(timeout=10)
    assert not thread.is_alive()
    assert server.sent < server.rows


def test_page_ranges_are_selected_by_ctid(monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []

    def record_statement(_table: SourceTable, statement: sql.Composed) -> Iterator[bytes]:
        statements.append(_text(statement))
        yield b"1\n"

    monkeypatch.setattr(postgres_copy, "_copied", record_statement)
    copy_reader = CopyReader(TABLE, [SelectedColumn("c0", "{0}::text", 'odd"name')], [(0, 10), (10, None)])
    batch = pa.RecordBatch.from_pydict({"id": [0, 1]})
    assert sum(found.num_rows for found in copy_reader([batch])) == 2
    assert statements == [
        f'copy (select "odd""name"::text from "public"."orders" q where {condition}) to stdout (format csv)'
        for condition in ("ctid >= '(0,0)'::tid and ctid < '(10,0)'::tid", "ctid >= '(10,0)'::tid")
    ]


def test_a_query_is_read_with_its_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []

    def record_statement(_table: SourceTable, statement: sql.Composed) -> Iterator[bytes]:
        statements.append(_text(statement))
        yield b"1\n"

    monkeypatch.setattr(postgres_copy, "_copied", record_statement)
    polled = replace(TABLE, relation="(select 1 as a)")
    reader = CopyReader(polled, [SelectedColumn("c0", "{0}", "a")], [], 'q."a" < 9')
    assert sum(found.num_rows for found in reader([pa.RecordBatch.from_pydict({"id": [0]})])) == 1
    assert statements == ['copy (select "a" from (select 1 as a) q where q."a" < 9) to stdout (format csv)']


def test_an_unreachable_server_is_reported_without_the_password() -> None:
    unreachable = SourceTable(SourceAccess("127.0.0.1", 9, "devdb", "me", "s3cret"), "1-1", "public", "orders", None)
    with pytest.raises(SourceUnreadableError, match=r"public\.orders of database devdb") as caught:
        list(CopyReader(unreachable, [SelectedColumn("c0", "{0}", "a")], [])([pa.RecordBatch.from_pydict({"id": [0]})]))
    assert "s3cret" not in caught.value.user_message


def _text(composed: sql.Composed) -> str:
    """Return the text of a statement. psycopg2's as_string() requires a connection."""
    parts = []
    for part in composed.seq:
        if isinstance(part, sql.SQL):
            parts.append(part.string)
        elif isinstance(part, sql.Identifier):
            parts.append(".".join('"' + name.replace('"', '""') + '"' for name in part.strings))
        elif isinstance(part, sql.Literal):
            parts.append(f"'{part.wrapped}'")
        elif isinstance(part, sql.Composed):
            parts.append(_text(part))
    return "".join(parts)


def test_hashed_and_constant_values_are_as_debezium_writes_them() -> None:
    access = replace(ACCESS, hash_salt="salt")
    text = Column(name="a", type="character varying(12)", masked=Masking(algorithm="SHA-256"), source="Source Name")
    whole = text.model_copy(update={"type": "text", "source": None})
    masked = text.model_copy(update={"masked": Masking(asterisks=3)})
    inserted = Column(name="d", type="text", inserted="it's")
    columns = [selected_column(f"c{n}", each) for n, each in enumerate((text, whole, masked, inserted))]
    assert columns[0].sql() == sql.SQL("{0}").format(sql.Identifier("Source Name"))
    assert [column.sql() for column in columns[2:]] == [
        sql.Composed([sql.Literal("***")]),
        sql.Composed([sql.Literal("it's")]),
    ]
    copy_reader = CopyReader(replace(TABLE, access=access), columns, [])
    assert "salt" not in str(copy_reader._statement(0))
    assert "salt" not in repr(copy_reader)
    (batch,) = copy_reader._parsed("ü,ü,***,it's\n,,***,it's\n".encode())
    digest = hashlib.sha256("saltü".encode()).hexdigest()
    assert batch.to_pydict() == {
        "c0": [digest[:12], None],
        "c1": [digest, None],
        "c2": ["***", "***"],
        "c3": ["it's", "it's"],
    }
