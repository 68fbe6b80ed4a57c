"""Refined tables by Trino: a SELECT whose rows change during a build, and one that ends in a comment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cdc_lake.contract.objects.store import S3Location
from cdc_lake.pipeline.assets.refined_table import RefinedTable
from cdc_lake.pipeline.loading import load
from cdc_lake_tests.fakes.shop.shop_pipeline import YAML, write_shop
from cdc_lake_tests.integration.conftest import QueryStack
from resources.glue.catalog import GlueCatalog

ROWS = "SELECT * FROM (VALUES (1, 'k1'), (2, 'k2')) AS rows (id, kind)"


@pytest.fixture
def refined(query_stack: QueryStack, tmp_path: Path) -> RefinedTable:
    """Return a refined table, partitioned by kind, whose SELECT ends in a comment."""
    at, secret = query_stack.at, query_stack.at.s3_secret_key.get_secret_value()
    folder = write_shop(tmp_path, YAML.replace("countries.sql]", "{ sql: countries.sql, partition_by: [kind] }]"))
    (folder / "countries.sql").write_text(f"{ROWS}; -- one partition for each kind")
    pipeline = load("shop", tmp_path)
    glue = GlueCatalog(endpoint_url=at.aws_endpoint, access_key=at.s3_access_key, secret_key=secret)
    glue.ensure_database(pipeline.catalog)
    store = S3Location(at.bucket, at.s3_endpoint, "us-east-1", at.s3_access_key, secret).store()
    sql = pipeline.sql("countries.sql", "datasets")
    return RefinedTable(
        pipeline, pipeline.spec.datasets[1], sql, query_stack.athena(pipeline.catalog), glue, store, at.bucket
    )


def test_a_select_that_ends_in_a_comment_is_built(refined: RefinedTable) -> None:
    build = refined.build(lambda: None)
    assert build.partitions == 2
    assert refined.build_of_view() == build.id
    assert refined.athena.query("SELECT id, kind FROM countries ORDER BY id").rows == ((1, "k1"), (2, "k2"))


def test_a_select_without_rows_at_its_second_evaluation_becomes_an_empty_table(
    refined: RefinedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RefinedTable, "_count", lambda _: 201)  # when the partitions were counted
    refined.athena.execute(f"CREATE OR REPLACE VIEW emptied AS {ROWS} WHERE id > 2")
    emptied = replace(refined, sql="SELECT * FROM emptied")
    assert emptied.build(lambda: None).statements == 1
    assert emptied.athena.query("SELECT count(*) FROM countries").rows == ((0,),)
