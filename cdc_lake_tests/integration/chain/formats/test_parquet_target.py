"""A Parquet target beside a Hudi target: equal rows after all kinds of changes, and a refined table over the first."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from cdc_lake.cli.app import app
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.failpoints import VARIABLE
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.pipeline import loading
from cdc_lake.pipeline.assets.standard_metadata import UNCHANGED
from cdc_lake.pipeline.checks import parquet_lake
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline, Formats, verified
from cdc_lake_tests.integration.chain.conftest import NewPipeline

TARGETS = ["{ name: files, database: columnar_files, format: parquet }", "{ name: lake, database: columnar }"]
TABLE = """
create table goods (
    id int primary key, kind text, v text, price numeric(8, 2), day date, at timestamptz, doc jsonb, tags text[],
    raw bytea, stock int
);
alter table goods alter column v set storage external;
insert into goods select n, 'k' || n % 130, 'v' || n, n + 0.5, date '2020-01-01' + n,
    timestamptz '2020-01-01 00:00:00.25Z', jsonb_build_object('n', n), array['a', null], '\\x00ff', n
    from generate_series(1, 150) n;
insert into goods values (1000, 'long', repeat('x', 5000), 1);
"""
SHOWN = "SELECT id, kind, v, price, day, doc, stock FROM {} ORDER BY id"


def formats() -> Formats:
    """Return the formats of this run: the topic's one follows from CDC_LAKE_SEED."""
    return ("avro" if int(os.environ.get("CDC_LAKE_SEED", "0")) % 2 else "json"), "parquet"


def at_source(pipeline: ChainPipeline) -> list[tuple[Any, ...]]:
    """Return the source's rows as SHOWN has them."""
    return pipeline.execute("select id, kind, v, price, day, doc::text, stock from goods order by id")


def stop(*_: object, **__: object) -> None:
    """Stop a registration."""
    raise ContractError("the registration was stopped")


def test_a_parquet_target_equals_source_and_hudi(new_pipeline: NewPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = new_pipeline(
        "columnar",
        {"goods": ""},
        targets=TARGETS,
        formats=formats(),
        refined={"goods_by_kind.sql": "SELECT id, kind, v, price FROM goods_latest; -- one partition for each kind"},
    )
    pipeline.execute(TABLE)
    found = pipeline.materialise("source", "topic", "raw", "lake", "dataset")
    lake = found.metadata["columnar/lake/files/goods_files"]
    assert (lake["events"], lake["files"]) == (151, 1)
    refined = found.metadata["columnar/dataset/goods_by_kind"]
    assert (refined["dagster/row_count"], refined["partitions"]) == (151, 131)
    assert "by 2 statements" in str(refined["changes"])
    assert pipeline.by_athena(SHOWN.format("goods_latest")) == at_source(pipeline)
    before_types = at_source(pipeline)

    # Older objects have narrower types.
    pipeline.execute("alter table goods alter column price type numeric(12, 2), alter column stock type bigint")
    pipeline.execute("update goods set stock = 5000000000, price = 1234567890.25 where id = 5")

    # Without the full replica identity, PostgreSQL leaves an unchanged long value out.
    pipeline.execute("alter table goods replica identity default")
    pipeline.execute("update goods set price = 2 where id = 1000")
    pipeline.execute("update goods set v = 'changed', day = null where id = 1")
    pipeline.execute("delete from goods where id = 2")
    pipeline.execute("update goods set id = 2000 where id = 3")
    # Until table and view have the wider types, the view shows the rows before the change.
    pipeline.await_stream()
    pipeline.materialise("raw")
    assert pipeline.by_athena(SHOWN.format("goods_latest")) == before_types
    for place, stopping in (("GlueCatalog.put_partitions", stop), ("failpoints", SimpleNamespace(reached=stop))):
        with monkeypatch.context() as stopped:
            stopped.setattr(f"cdc_lake.pipeline.parquet_target.raw_table.{place}", stopping)
            with pytest.raises(ContractError, match="the registration was stopped"):
                pipeline.materialise("lake")
        assert pipeline.by_athena(SHOWN.format("goods_latest")) == before_types
    pipeline.materialise("lake")
    lacking = pipeline.by_athena("SELECT id, v, __unchanged FROM goods_raw WHERE cardinality(__unchanged) > 0")
    assert [(key, value) for key, value, _ in lacking] == [(1000, None)]
    assert pipeline.by_athena(SHOWN.format("goods_latest")) == at_source(pipeline)
    by_hudi = {key: row["v"] for key, row in pipeline.by_spark("goods", 1).items()}
    assert by_hudi == {row[0]: row[2] for row in at_source(pipeline)}

    # A build that fails leaves the previous one; each run after it makes a new one.
    shown = "SELECT count(*), sum(price) FROM goods_by_kind"
    before, after = pipeline.by_athena(shown), pipeline.execute("select count(*), sum(price) from goods")
    assert before != after
    for place, expected in (("before_group", before), ("before_view", before), ("after_view", after)):
        with monkeypatch.context() as armed:
            armed.setenv(VARIABLE, f"refined.{place}=raise")
            with pytest.raises(ContractError, match=f"refined.{place}"):
                pipeline.materialise("dataset")
        assert pipeline.by_athena(shown) == expected
    pipeline.materialise("dataset")
    assert pipeline.by_athena(shown) == after
    assert pipeline.materialise("dataset").metadata["columnar/dataset/goods_by_kind"]["changes"] == UNCHANGED

    # A column with a default: older rows show it, without being written again.
    pipeline.execute(
        "alter table goods add column n int not null default 7; alter table goods rename column kind to sort"
    )
    pipeline.execute("insert into goods (id, sort, n) values (3000, 'new', 8)")
    first = pipeline.store
    head = Chain(first, "columnar", pipeline.table("goods").topic).head()
    assert head is not None
    [item] = head.objects
    stored = first.get(item.key)
    assert stored is not None
    # A landing that was killed before its manifest leaves objects after the chain's end.
    end = head.next_offsets()[item.partition]
    left = item.key.replace(f"{item.last:020d}", f"{end + 999:020d}").replace(f"{item.first:020d}", f"{end:020d}")
    first.put_new(left, stored.body)
    assert parquet_lake.unlisted(first, pipeline.table("goods")) == {left: False}
    pipeline.land_and_apply()
    assert parquet_lake.unlisted(first, pipeline.table("goods")) == {}
    # A landing that lost its lease can write an object whose offsets are committed.
    late = item.key.replace(f"{item.last:020d}", f"{item.first:020d}")
    first.put_new(late, stored.body)
    assert parquet_lake.unlisted(first, pipeline.table("goods")) == {late: True}
    first.delete([late])
    counted = pipeline.by_athena("SELECT n, count(*) FROM goods_latest GROUP BY n ORDER BY n")
    assert counted == [(7, 150), (8, 1)]
    assert pipeline.by_athena("SELECT sort FROM goods_latest WHERE id IN (1, 3000) ORDER BY id") == [("k1",), ("new",)]
    assert verified(pipeline) == {"files.goods": (True, 151), "goods": (True, 151)}

    # A partition that somebody deleted from the catalog.
    goods, glue = pipeline.table("goods"), pipeline.resources["glue"]
    named = {"DatabaseName": goods.database, "TableName": goods.catalog_table}
    [partition] = glue.partitions(goods.database, goods.catalog_table)
    glue.client("glue").delete_partition(**named, PartitionValues=list(partition))
    assert pipeline.by_athena("SELECT count(*) FROM goods_latest") == [(0,)]
    assert parquet_lake.missing_partitions(first, goods, glue) == ["__epoch=0/__partition=0"]
    glue.delete_table(goods.database, goods.catalog_table)
    pipeline.materialise("lake")
    assert parquet_lake.missing_partitions(first, goods, glue) == []
    assert pipeline.by_athena("SELECT count(*) FROM goods_latest") == [(151,)]

    # A row that was deleted while the stream was lost has no delete event.
    pipeline.resources["connect"].delete(pipeline.loaded.connector)
    pipeline.execute("delete from goods where id = 4")
    pipeline.resnapshot()
    pipeline.materialise("lake")
    assert pipeline.by_athena("SELECT count(*), count_if(id = 4), max(__epoch) FROM goods_raw") == [(308, 1, 1)]
    assert pipeline.by_athena("SELECT count(*), count_if(id = 4) FROM goods_latest") == [(150, 0)]
    assert verified(pipeline) == {"files.goods": (True, 150), "goods": (True, 150)}

    monkeypatch.setattr(loading, "load", lambda _name: pipeline.loaded)
    done = CliRunner().invoke(app, ("raw", "cat", "columnar", "--where", "id=3000", "--limit", "1"))
    assert json.loads(done.stdout)["sort"] == "new", done.output
