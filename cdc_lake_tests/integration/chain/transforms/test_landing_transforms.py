"""The same transforms at the source and at landing, from the log: the same lake, and other records in Kafka."""

from __future__ import annotations

import json
import os

import pytest

from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS
from cdc_lake_tests.integration.chain.chain_pipeline import Formats, verified
from cdc_lake_tests.integration.chain.conftest import NewPipeline

TRANSFORMS = """
  transforms:
    - {{ type: ReplaceField, table: {0}, at: {1}, renames: {{ district: state_province }} }}
    - {{ type: InsertField, table: {0}, at: {1}, static: {{ environment: "test, ü" }}, topic: message_topic }}
    - {{ type: Cast, table: {0}, at: {1}, spec: {{ small: float64, n: string, big: string, ok: string, m: int64 }} }}
"""
KEYS = """
    - { type: ValueToKey, table: early, fields: [district, n] }
    - { type: "ExtractField$Key", table: late, field: id }
"""
PEOPLE = """
create table {} (id int primary key, district text, small smallint, n int, big bigint, ok boolean, m int, e real);
insert into {} values (1, 'nörth', 1, 2, 9007199254740993, true, 4, 0.1), (2, null, null, null, null, null, null, null);
"""
SEED = int(os.environ.get("CDC_LAKE_SEED", "0"))
LANDINGS = ("", ", landing: { format: parquet }")


def test_a_transform_gives_the_same_rows_at_the_source_and_at_landing(new_pipeline: NewPipeline) -> None:
    formats: Formats = ("avro" if SEED % 2 else "json"), "json"
    early_landing, late_landing = LANDINGS if SEED // 2 % 2 else LANDINGS[::-1]
    late = TRANSFORMS.format("late", "landing").removeprefix("\n  transforms:\n")
    pipeline = new_pipeline(
        "moved",
        {"early": early_landing, "late": late_landing},
        targets=["{ name: files, database: moved_files, format: parquet }", "{ name: lake, database: moved }"],
        formats=formats,
        more=TRANSFORMS.format("early", "source") + late + KEYS.removeprefix("\n"),
    )
    for table in ("early", "late"):
        pipeline.execute(PEOPLE.format(table, table))
    shown = pipeline.materialise().metadata["moved/source/late_source"]["transforms"]
    assert "n cast from integer to text" in shown
    for table in ("early", "late"):
        pipeline.execute(
            f"update {table} set district = 'söuth', n = -7 where id = 1; delete from {table} where id = 2"
        )
        pipeline.execute(f"insert into {table} values (3, 'east', 3, 3, 3, false, 3, 3)")
    pipeline.land_and_apply()
    rows = {}
    for table in ("early", "late"):
        names = "id, state_province, small, n, big, ok, m, e, environment"
        query = f"SELECT {names}, message_topic = 'moved.moved.{table}' FROM {{}} ORDER BY id"
        rows[table] = pipeline.by_athena(query.format(f"{table}_latest"))
        assert pipeline.by_athena(query.format(f"moved.{table}_current")) == rows[table]
    assert rows["early"] == rows["late"]
    assert rows["late"][0] == (
        1,
        "söuth",
        1.0,
        "-7",
        "9007199254740993",
        "true",
        4,
        pytest.approx(0.1),
        "test, ü",
        True,
    )
    assert rows["late"][1][2:7] == (3, "3", "3", "false", 3)
    assert verified(pipeline) == dict.fromkeys(("files.early", "early", "files.late", "late"), (True, 2))
    assert pipeline.dead_letters() == []

    if formats[0] == "json":
        kafka = pipeline.resources["kafka"]
        early, late_records = (list(kafka.peek(pipeline.table(table).topic)) for table in ("early", "late"))
        fields = {"id", "district", "small", "n", "big", "ok", "m", "e", *EVENT_FIELDS}
        assert {frozenset(json.loads(each.value or b"{}")) for each in late_records} == {frozenset(fields)}
        assert json.loads(late_records[0].value or b"")["n"] == 2
        assert json.loads(early[0].value or b"")["n"] == "2"
        assert [json.loads(each.key or b"null") for each in late_records] == [1, 2, 1, 2, 3]
        assert json.loads(early[0].key or b"null") == {"state_province": "nörth", "n": "2"}
