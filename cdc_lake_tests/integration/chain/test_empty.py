"""A table without rows is in the lake and in the catalog, and its first row arrives."""

from __future__ import annotations

from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake_tests.integration.chain.conftest import NewPipeline


def test_an_empty_table_is_in_the_lake_and_the_catalog(new_pipeline: NewPipeline) -> None:
    pipeline = new_pipeline("hollow", {"goods": ""}, {"named.sql": "SELECT id FROM hollow.goods_current\n"})
    pipeline.execute("create table goods (id int primary key, v text)")
    pipeline.materialise("source", "topic", "raw", "lake", "dataset")
    assert pipeline.by_spark("goods") == {}
    assert pipeline.by_athena("SELECT count(*) FROM goods_current") == [(0,)]
    assert pipeline.by_athena("SELECT count(*) FROM named") == [(0,)]
    assert pipeline.materialise("raw").metadata["hollow/raw/goods_raw"]["changes"] == standard_metadata.UNCHANGED
    pipeline.execute("insert into goods values (1, 'a')")
    pipeline.land_and_apply()
    assert {key: row["v"] for key, row in pipeline.by_spark("goods").items()} == {1: "a"}
    assert pipeline.by_athena("SELECT id FROM named") == [(1,)]
