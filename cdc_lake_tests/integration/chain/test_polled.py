"""A polled pipeline as an asset graph on a whole stack, with its checks, catalog and metadata."""

from __future__ import annotations

from cdc_lake.pipeline.source_health import polled_source
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
"""
SHOUTED = {"shouted.sql": "SELECT id, upper(v) AS v, changed FROM polled_chain.goods;\n"}


def test_rows_are_polled_from_the_source_to_the_catalog(new_pipeline: NewPipeline) -> None:
    pipeline = new_pipeline("polled_chain", {}, datasets=SHOUTED, text=YAML)
    source = pipeline.flow.source_postgres(pipeline.resources["postgres"])
    pipeline.execute("create schema polled_chain")
    pipeline.execute("create table goods (id int primary key, v text, changed timestamptz not null default now())")
    pipeline.execute("insert into goods values (1, 'a'), (2, 'b')")
    polled_source.await_visible(pipeline.table("goods"), source, 60)
    first = pipeline.materialise()
    assert first.failed == {}
    assert [first.checks[f"polled_chain/topic/{name}_topic:polls_whole"] for name in ("goods", "shouted")] == [True] * 2
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
