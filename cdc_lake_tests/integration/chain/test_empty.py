"""A table that has no row yet: it is in the lake and in the catalog all the same, and its first row arrives."""

from __future__ import annotations

from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake_tests.integration.chain.conftest import NewLine


def test_an_empty_table(new_line: NewLine) -> None:
    line = new_line("hollow", {"goods": ""}, {"named.sql": "SELECT id FROM hollow.goods_current\n"})
    line.execute("create table goods (id int primary key, v text)")
    line.materialise("source", "topic", "raw", "lake", "dataset")
    assert line.by_spark("goods") == {}
    assert line.by_athena("SELECT count(*) FROM goods_current") == [(0,)]
    assert line.by_athena("SELECT count(*) FROM named") == [(0,)]
    assert line.materialise("raw").metadata["hollow/raw/goods"]["changes"] == standard_metadata.UNCHANGED
    line.execute("insert into goods values (1, 'a')")
    line.carry()
    assert {key: row["v"] for key, row in line.by_spark("goods").items()} == {1: "a"}
    assert line.by_athena("SELECT id FROM named") == [(1,)]
