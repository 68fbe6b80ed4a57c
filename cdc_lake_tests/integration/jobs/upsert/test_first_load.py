"""The first load, written by bulk_insert.py, creates the same table as Hudi's own data source would."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError

from cdc_lake.contract.errors import LeaseLostError
from cdc_lake.contract.table import timeline
from cdc_lake.jobs.hudi.hudi_lake_table import HudiLakeTable
from cdc_lake.jobs.hudi.key_column import lake_columns
from cdc_lake.jobs.hudi.table_options import TableType
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.integration.jobs.upsert.test_upsert_values import EDGES, NULLS, by_hudi_rs, by_spark
from cdc_lake_tests.integration.jobs.upsert.typed_table import COLUMNS, KEY, record

# They differ between two tables, or with the order in which Hudi stores the others.
_OWN = ("#", "hoodie.table.checksum=", "hoodie.table.initial.version=")


def properties(table: LakeTable, prefix: str) -> set[str]:
    """Return the lines of a table's properties."""
    stored = table.store.get(f"{prefix}.hoodie/hoodie.properties")
    assert stored is not None
    return {line for line in stored.body.decode().splitlines() if not line.startswith(_OWN)}


def file_schemas(table: LakeTable, prefix: str) -> set[pa.Schema]:
    """Return the schemas of a table's Parquet files."""
    keys = [item.key for item in table.store.scan(prefix) if item.key.endswith(".parquet")]
    return {pq.read_schema(io.BytesIO(table.store.get(key).body)).remove_metadata() for key in keys}  # type: ignore[union-attr]


def folders(table: LakeTable, prefix: str) -> set[str]:
    """Return the folders of a table's Parquet files."""
    keys = [item.key for item in table.store.scan(prefix) if item.key.endswith(".parquet")]
    return {key.removeprefix(prefix).rpartition("/")[0] for key in keys}


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("partition_by", [(), ("mixedcase", "small", "day", "yes")], ids=["whole", "partitioned"])
def test_a_first_load_creates_the_table_of_hudis_data_source(
    new_table: NewTable, table_type: TableType, partition_by: Sequence[str]
) -> None:
    table = new_table(COLUMNS, KEY)
    spec = replace(table.spec, table_type=table_type, partition_by=partition_by)
    table.deliver([record(1), record(2, MixedCase="a/b=c%"), record(3, small=0)])
    assert table.upsert(spec).operation == "bulk_insert"
    spark = table.engines.spark
    stored = spark.read.format("hudi").load(spec.uri())
    other = replace(spec, target="other")
    with other.writer_lease(table.store) as held:
        rows = stored.select(*lake_columns(stored))
        other.lake_table(table.store).write(rows, table.checkpoint(), held, "upsert", previous=None)
    assert properties(table, spec.prefix) - properties(table, other.prefix) == {"hoodie.bootstrap.index.enable=false"}
    assert properties(table, spec.prefix) > properties(table, other.prefix)
    assert folders(table, spec.prefix) == folders(table, other.prefix)
    assert file_schemas(table, spec.prefix) == file_schemas(table, other.prefix)
    first, second = (timeline.last_commit(table.store, each.prefix) for each in (spec, other))
    assert first is not None
    assert second is not None
    assert (first.checkpoint, first.inserts) == (second.checkpoint, second.inserts) == (table.checkpoint(), 3)


def test_a_row_leaves_the_partition_of_a_first_load(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    spec = replace(table.spec, partition_by=("day", "yes"))
    table.deliver([record(1), record(2), record(3, yes=False)])
    table.upsert(spec)
    table.deliver([record(1, yes=False, __lsn=31_268_700), record(2, small=1, __lsn=31_268_701)])
    table.upsert(spec)
    found = sorted((row["id"], row["yes"], row["small"]) for row in table.by_hudi_rs())
    assert found == [(1, False, -32_768), (2, True, 1), (3, False, -32_768)]


def test_later_batches_keep_the_values_of_a_first_load(new_table: NewTable) -> None:
    """Hudi copies them as Avro records, with the types in the file."""
    table = new_table(COLUMNS, KEY)
    table.deliver([record(1), record(2, **NULLS), record(3, **EDGES)])
    table.upsert()
    before = by_spark(table)
    table.deliver([record(4, __lsn=31_268_700)])
    assert table.upsert().commit.inserts == 1
    after = by_spark(table)
    own = {name for name in after[1] if name.startswith("_hoodie_")}
    for key in (1, 2, 3):
        assert {**after[key], **{name: before[key][name] for name in own}} == before[key]
    assert by_hudi_rs(table) == after


def test_an_empty_table_of_another_layout_is_not_filled(new_table: NewTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt created the table and failed, and the YAML was changed before the next."""

    def lose_lease() -> NoReturn:
        raise LeaseLostError("the first attempt ends here")

    table = new_table(COLUMNS, KEY)
    table.deliver([record(1)])
    with monkeypatch.context() as patched:
        patched.setattr(HudiLakeTable, "_before_commit", lambda *_: lose_lease)
        with pytest.raises(LeaseLostError):
            table.upsert()
    with pytest.raises(Py4JJavaError, match="Config conflict"):
        table.upsert(replace(table.spec, partition_by=("small",)))
    assert table.upsert().commit.inserts == 1
