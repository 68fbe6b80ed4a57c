"""A polled pipeline as an asset graph on a whole stack, with its checks, catalog and metadata."""

from __future__ import annotations

import dagster as dg

from cdc_lake.pipeline.checks import dataset
from cdc_lake.pipeline.source_health import polled_source
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline
from cdc_lake_tests.integration.chain.conftest import NewPipeline

YAML = """\
type: cdc_lake.CdcPipeline
attributes:
  name: polled_chain
  source: { kind: query, database: devdb, schema: polled_chain }
  stream: { prefix: polled_chain }
  tables:
    - { name: goods, key: [id], poll: { timestamp: changed } }
    - { name: shouted, key: [id], topic: alt.goods, poll: { table: goods, timestamp: changed, sql: shouted.sql } }
  targets:
    - { name: lake, database: polled_chain }
  datasets: [prices.sql]
"""
FILES = {
    "shouted.sql": "SELECT id, upper(v) AS v, changed FROM polled_chain.goods; -- every row\n",
    "prices.sql": "SELECT id, price FROM goods_current -- the lake's rows\n",
    "prices.source.sql": "SELECT id, price FROM polled_chain.goods -- the source's rows\n",
}


def totals(pipeline: ChainPipeline) -> dg.AssetCheckResult:
    """Compare the totals of the dataset with those of its query on the source."""
    [check] = dataset.build(pipeline.loaded)
    names = ("postgres", "kafka", "connect", "store", "athena", "deployment")
    found = check(dg.build_asset_check_context(), **{name: pipeline.resources[name] for name in names})
    assert isinstance(found, dg.AssetCheckResult)
    return found


def test_rows_are_polled_from_the_source_to_the_catalog(new_pipeline: NewPipeline) -> None:
    pipeline = new_pipeline("polled_chain", {}, datasets=FILES, text=YAML)
    source = pipeline.loaded.source_postgres(pipeline.resources["postgres"])
    pipeline.execute("create schema polled_chain")
    columns = "id int primary key, v text, price numeric(6, 2), changed timestamptz not null default now()"
    pipeline.execute(f"create table goods ({columns})")
    pipeline.execute("insert into goods values (1, 'a', 1.50), (2, 'b', 2)")
    polled_source.await_visible(pipeline.table("goods"), source, 60)
    first = pipeline.materialise()
    assert first.failed == {}
    assert [first.checks[f"polled_chain/topic/{name}_topic:polls_continuous"] for name in ("goods", "shouted")] == [
        True
    ] * 2
    assert first.metadata["polled_chain/topic/goods_topic"]["changes"] == "poll 1: 2 records"
    pipeline.execute("update goods set v = 'c', changed = now() where id = 2")
    polled_source.await_visible(pipeline.table("goods"), source, 60)
    second = pipeline.materialise("topic", "raw", "lake")
    assert second.metadata["polled_chain/topic/goods_topic"]["dagster/row_count"] == 3
    assert second.metadata["polled_chain/lake/goods_lake"]["watermark_lsn"] == 2
    assert pipeline.by_athena("SELECT id, v FROM goods_current ORDER BY id") == [(1, "a"), (2, "c")]
    assert pipeline.by_athena("SELECT id, v FROM shouted_current ORDER BY id") == [(1, "A"), (2, "C")]
    idle = pipeline.materialise("topic", "raw", "lake")
    assert idle.metadata["polled_chain/topic/goods_topic"]["changes"] == "nothing new, nothing changed"

    # A dataset of polled tables has the check of its totals, which detects deleted rows, and only warns until the next
    # poll.
    pipeline.materialise("dataset")
    assert totals(pipeline).passed
    pipeline.execute("update goods set price = 3, changed = now() where id = 2")
    late = totals(pipeline)
    assert (late.passed, late.severity) == (False, dg.AssetCheckSeverity.WARN)
    polled_source.await_visible(pipeline.table("goods"), source, 60)
    pipeline.materialise("topic", "raw", "lake")
    assert totals(pipeline).passed
    pipeline.execute("delete from goods where id = 1")
    deleted = totals(pipeline)
    assert (deleted.passed, deleted.severity) == (False, dg.AssetCheckSeverity.ERROR)
    pipeline.reconcile("goods")
    pipeline.materialise("raw", "lake")
    assert totals(pipeline).passed
