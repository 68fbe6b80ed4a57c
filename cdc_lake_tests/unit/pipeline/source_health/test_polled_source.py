"""The columns of the polled table that a SELECT returns as polled columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.source_health import polled_source
from cdc_lake_tests.fakes.shop.shop_pipeline import write_shop
from cdc_lake_tests.unit.pipeline.spec.polled_shop import QUERY


@pytest.mark.parametrize(
    ("selected", "column"),
    [
        ("o.order_id, o.changed", "changed"),
        ("o.order_id, o.Updated_At AS Changed", "updated_at"),
        ('o.order_id, o."Updated" AS changed', "Updated"),
        ("o.*", "changed"),
        ("o.order_id, greatest(o.changed, c.changed) AS changed", None),
        ("o.order_id, o.tags ? 'new' AS is_new, o.changed -- the newest\n", "changed"),
    ],
)
def test_the_column_of_the_table_is_found_behind_an_alias(tmp_path: Path, selected: str, column: str | None) -> None:
    folder = write_shop(tmp_path, QUERY)
    (folder / "order_countries.sql").write_text(
        f"SELECT {selected} FROM sales.orders o LEFT JOIN sales.countries c USING (country_id)"
    )
    table, query = load("shop", tmp_path).tables
    assert polled_source.table_columns(table) == {"changed": "changed"}
    assert polled_source.table_columns(query) == {"changed": column}
