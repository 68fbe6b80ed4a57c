"""Read and write raw objects as Parquet: typed rows, each with its position and the record that it was decoded from.

jobs/landing/typed_rows.py decodes the rows. This module defines the columns that are added to the source's, and reads
and writes files. Readers of the lake query the typed columns; the upsert reads the records, as from any raw object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

Compression = Literal["gzip", "snappy", "zstd"]
EXTENSION = "parquet"

UNCHANGED, VERSION, EPOCH, PARTITION, OFFSET, RECORD = (
    "__unchanged",
    "__schema_version",
    "__epoch",
    "__partition",
    "__offset",
    "__record",
)
OWN_COLUMNS = {
    UNCHANGED: "array<string>",
    VERSION: "int",
    EPOCH: "int",
    PARTITION: "int",
    OFFSET: "bigint",
    RECORD: "string",
}
"""The columns that follow those of the source and Debezium, with their Hive types.

`__unchanged` contains the names of the columns whose value PostgreSQL omitted because it did not change, NULL if no
value was omitted; `__schema_version` the version of the captured schema; `__epoch`, `__partition` and `__offset` the
record's position; `__record` the record as JSON.
"""


def join(rows: Sequence[pa.RecordBatch], compression: Compression) -> bytes:
    """Return the body of an object with these rows. Equal rows give equal bytes with the same version of PyArrow."""
    body = BytesIO()
    pq.write_table(pa.Table.from_batches(rows).combine_chunks(), body, compression=compression)
    return body.getvalue()


def values(body: bytes) -> Iterator[bytes]:
    """Yield the records of an object as JSON, in order. Raises pyarrow's error if the body is not a Parquet file."""
    column = pq.read_table(BytesIO(body), columns=[RECORD]).column(RECORD)
    return (value.encode() for value in column.to_pylist())
