"""Records for typed rows: a batch has the same Arrow types, whatever its records are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.jobs.apply.record_fields import TEXTS, RecordParser
from cdc_lake.jobs.landing.typed_rows import AsJson

SCHEMA = TableSchema(version=1, table="public.orders", columns=(Column(name="id", type="integer"),), key=("id",))
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.mark.parametrize("values", [[b"{}", None], [None], [b"", None]])
def test_rejected_records_alone_have_the_types_of_others(values: list[bytes | None]) -> None:
    """Spark's writer of Arrow refuses a batch whose types differ from those of the first one."""
    count = len(values)
    batch = pa.RecordBatch.from_pydict(
        {
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "value": pa.array(values, pa.binary()),
            "key": pa.array([None] * count, pa.binary()),
            "headers": pa.array([None] * count, HEADERS),
        }
    )
    [found] = AsJson(0, 1000, None, RecordParser.of([SCHEMA]))([batch])
    assert found.schema.field("value").type == pa.binary()
    assert found.schema.field("unreadable").type == pa.string()
    assert {field.type for field in found.schema.field(TEXTS).type} == {pa.string()}
    readable = found.column("value").to_pylist()
    assert [each is None for each in readable] == [each is not None for each in found.column("unreadable").to_pylist()]
