"""Tables that are landed as JSON, or partitioned by columns, in a Parquet target: their views equal source and Hudi."""

from __future__ import annotations

import os
from io import BytesIO
from typing import Any

import pyarrow.parquet as pq
import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.pipeline.checks import parquet_lake
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline, verified
from cdc_lake_tests.integration.chain.conftest import NewPipeline
from cdc_lake_tests.integration.chain.formats.type_values import CASES, LONG, TYPES_SQL

TOPIC_FORMAT = "avro" if int(os.environ.get("CDC_LAKE_SEED", "0")) % 2 else "json"
STREAMED = 1000
SHOWN = "SELECT id, country, since, active, v FROM {} ORDER BY id"
COUNTRIES = ("Peru", "C/D: x=1 50%", "Côte d'Ivoire", "a'b\"c\\d", " two words ", "{[^]}?#*+", "🦆 ü", "Peru")
PLACES = """
create table {0} (id int primary key, country text, since date, active boolean not null, v text);
alter table {0} alter column v set storage external;
"""


def targets(name: str) -> list[str]:
    """Return a Parquet target and a Hudi target."""
    files, lake = "{{ name: files, database: {}_files, format: parquet }}", "{{ name: lake, database: {} }}"
    return [files.format(name), lake.format(name)]


def is_timestamp(kind: str) -> bool:
    """Return whether a type is a timestamp, not an array of them."""
    return kind.startswith("timestamp") and not kind.endswith("[]")


def test_the_view_over_json_has_values_of_every_type(new_pipeline: NewPipeline) -> None:
    rules = ", values: { infinity: max, nan: null }"
    pipeline = new_pipeline(
        "json_types", {"wide": rules}, targets=targets("json_types"), formats=(TOPIC_FORMAT, "json")
    )
    # A catalog table of JSON has no function for bit strings, and dead letters are in neither table.
    cases = [case for case in CASES if not case.type.startswith("bit(") and case.lake is not ...]
    pipeline.execute(TYPES_SQL)
    wide = ", ".join(f"c{place} {case.type}" for place, case in enumerate(cases))
    pipeline.execute(f"create table wide (id int primary key, {wide})")
    special = [
        f"c{place} = '{end}infinity'"
        for place, case in enumerate(cases)
        for end in ("", "-")
        if case.type == "date" or is_timestamp(case.type)
    ]
    for base in (0, STREAMED):
        for place, case in enumerate(cases):
            values = {"id": base + place, **LONG}
            pipeline.execute(f"insert into wide (id, c{place}) values (%(id)s, {case.sql})", values)
        for place, change in enumerate(special):
            pipeline.execute(f"insert into wide (id) values ({base + 500 + place})")
            pipeline.execute(f"update wide set {change} where id = {base + 500 + place}")
        pipeline.execute(f"insert into wide (id) values ({base + 900})")
        if base == 0:
            pipeline.materialise()
        else:
            pipeline.land_and_apply()
    different = []
    for place, case in enumerate(cases):
        one, other = f"a.c{place}", f"b.c{place}"
        if is_timestamp(case.type):  # Athena's views have milliseconds
            near = f"date_diff('millisecond', {one}, {other}) BETWEEN -1 AND 1"
            one, other = f"coalesce({near}, {one} IS NULL AND {other} IS NULL)", "true"
        elif case.type.endswith("[]"):
            one, other = f"json_parse({one})", f"json_parse({other})"
        different.append(f"count_if(({one}) IS DISTINCT FROM ({other})) AS c{place}")
    [counts] = pipeline.by_athena(
        f"SELECT count(*), count(a.id), count(b.id), {', '.join(different)} FROM wide_latest a "
        "FULL JOIN json_types.wide_current b ON a.id = b.id"
    )
    total, latest, current, *wrong = counts
    assert {cases[place].type: count for place, count in enumerate(wrong) if count} == {}
    assert total == latest == current
    assert int(str(total)) > 2 * len(cases)
    reports = verified(pipeline)
    assert reports["files.wide"][1] == reports["wide"][1] == total


def at_source(pipeline: ChainPipeline, table: str) -> list[tuple[Any, ...]]:
    """Return the source's rows as SHOWN has them."""
    return pipeline.execute(f"select id, country, since, active, v from {table} order by id")


def columns_of(pipeline: ChainPipeline, table: str) -> list[str]:
    """Return the columns of a table in the catalog."""
    found = pipeline.by_athena(
        f"SELECT column_name FROM information_schema.columns WHERE table_schema = '{pipeline.loaded.catalog}' "
        f"AND table_name = '{table}' ORDER BY ordinal_position"
    )
    return [str(name) for (name,) in found]


def test_partitioned_objects_and_json(new_pipeline: NewPipeline) -> None:
    parquet = ", landing: { format: parquet, compression: zstd, partition_by: [country, since, active] }"
    tables = {"places": ", landing: { partition_by: [country] }", "visits": parquet}
    pipeline = new_pipeline("placed", tables, targets=targets("placed"), formats=(TOPIC_FORMAT, "json"))
    for table in tables:
        pipeline.execute(PLACES.format(table))
        for place, country in enumerate(COUNTRIES):
            row = (place, country, "2024-02-29", place % 2 == 0, f"v{place}")
            pipeline.execute(f"insert into {table} values (%s, %s, %s, %s, %s)", *row)
        pipeline.execute(
            f"insert into {table} values (20, null, null, true, repeat('x', 5000)), (21, '', null, true, 'a')"
        )
    found = pipeline.materialise()
    assert found.failed == {}
    reasons = {letter.reason for letter in pipeline.dead_letters()}
    assert reasons == {"the partition column country is '', which readers return as NULL"}
    for table in tables:
        pipeline.execute(f"update {table} set country = 'fixed' where id = 21")
        pipeline.execute(f"alter table {table} replica identity default")
        # The long value is left out of the first record, and the second is in another partition.
        pipeline.execute(f"update {table} set active = false where id = 20")
        pipeline.execute(f"update {table} set country = 'Chile', since = '2024-03-01' where id = 0")
        pipeline.execute(f"delete from {table} where id = 1")
    pipeline.land_and_apply()
    for table in tables:
        assert pipeline.by_athena(SHOWN.format(f"{table}_latest")) == at_source(pipeline, table), table
        of_peru = pipeline.by_athena(f"SELECT id, __op FROM {table}_raw WHERE country = 'Peru' ORDER BY id")
        assert of_peru == [(0, "r"), (7, "r")], table
    keys = ["country", "__epoch", "__partition"]
    assert columns_of(pipeline, "places_raw")[-3:] == keys
    assert columns_of(pipeline, "visits_raw")[-5:] == ["country", "since", "active", "__epoch", "__partition"]
    for table in tables:
        names = columns_of(pipeline, f"{table}_raw")
        assert len(names) == len(set(names))
    head = Chain(pipeline.store, "placed", pipeline.table("visits").topic).head()
    assert head is not None
    for item in head.objects:
        name, stored = ObjectName.parse(item.key), pipeline.store.get(item.key)
        assert name is not None
        assert stored is not None
        assert list(name.values()) == ["country", "since", "active"]
        assert {"country", "since", "active"}.isdisjoint(pq.read_table(BytesIO(stored.body)).column_names)

    # A landing that was killed leaves objects in the folder of a value.
    item = head.objects[0]
    left = item.key.replace(f"{item.first:020d}+{item.last:020d}", f"{item.last + 900:020d}+{item.last + 999:020d}")
    pipeline.store.put_new(left, b"x")
    assert list(parquet_lake.unlisted(pipeline.store, pipeline.table("visits"))) == [left]

    # Older JSON lacks a new column, and has a renamed one under its old name.
    for table in tables:
        pipeline.execute(f"alter table {table} rename column v to w")
        pipeline.execute(f"alter table {table} add column n int not null default 7")
        pipeline.execute(f"update {table} set n = 8, w = null where id = 3")
    pipeline.land_and_apply()
    assert list(parquet_lake.unlisted(pipeline.store, pipeline.table("visits"))) == []
    for table in tables:
        rows = pipeline.by_athena(f"SELECT id, w, n FROM {table}_latest ORDER BY id")
        assert rows == pipeline.execute(f"select id, w, n from {table} order by id"), table
    expected = len(at_source_ids(pipeline, "places"))
    assert verified(pipeline) == dict.fromkeys(("files.places", "places", "files.visits", "visits"), (True, expected))

    # A new column has the former name of another one: a new epoch begins, in which the name is that of the new column.
    for table in tables:
        pipeline.execute(f"alter table {table} add column v text")
        pipeline.execute(f"update {table} set v = 'another column', w = null where id = 5")
    with pytest.raises(ContractError, match="resnapshot placed"):
        pipeline.land_and_apply()
    pipeline.resnapshot()
    pipeline.execute("update places set v = 'changed' where id = 6")
    pipeline.land_and_apply()
    for table in tables:
        rows = pipeline.by_athena(f"SELECT id, w, v FROM {table}_latest ORDER BY id")
        assert rows == pipeline.execute(f"select id, w, v from {table} order by id"), table
    assert verified(pipeline) == dict.fromkeys(("files.places", "places", "files.visits", "visits"), (True, expected))

    pipeline.execute("alter table places add column m int default 5; insert into places (id, active) values (99, true)")
    if TOPIC_FORMAT == "avro":  # Apicurio's converter cannot write such a column, so it is omitted
        pipeline.land_and_apply()
        assert pipeline.by_athena("SELECT id FROM places_latest WHERE id = 99") == [(99,)]
        assert "m" not in columns_of(pipeline, "places_raw")
        return
    # JSON cannot show the difference between a missing field and NULL.
    with pytest.raises(ContractError, match=r"Cannot (add|capture) column m (to|of) placed\.places.* may be NULL"):
        pipeline.land_and_apply()


def at_source_ids(pipeline: ChainPipeline, table: str) -> list[tuple[Any, ...]]:
    """Return the ids of the source's rows."""
    return pipeline.execute(f"select id from {table}")
