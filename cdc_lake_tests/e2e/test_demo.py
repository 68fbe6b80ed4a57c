"""The demo: counts by stage, example changes, and passed checks; the same again, also with a folder of SQL scripts."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cdc_lake.pipeline.loading import load
from cdc_lake_tests.e2e.demo_summary import assert_demo_is_complete
from cdc_lake_tests.helpers.command_line import CommandLine
from cdc_lake_tests.helpers.sql_scripts import write_scripts
from cdc_lake_tests.pytest_hooks.long_test_sizes import full_only
from cdc_lake_tests.unit.dashboard.page_reader import Page


def test_the_demo_has_its_counts_and_passes_all_checks(demo: dict[str, Any]) -> None:
    assert_demo_is_complete(demo)
    assert demo["exit_code"] == 0
    assert "log level" not in demo["stderr"], "Spark's JVM prints between the lines of progress"
    assert demo["records"] == {"topic": 829, "raw": 829}
    # Every check of the graph has run and has a result.
    assert demo["checks"]["passed"] == 19
    assert Path(demo["dashboard"]).is_file()
    assert {"setup", "up", "source", "topic", "raw", "lake", "dataset", "dashboard", "total"} <= demo["seconds"].keys()


def test_the_example_changes_report_their_changes_in_every_stage(demo: dict[str, Any]) -> None:
    shipped, inserted, deleted = (demo["stories"][name] for name in ("shipped", "inserted", "deleted"))
    assert (shipped["events"], shipped["records_in_raw"]) == (1, 2)
    assert (shipped["shipped_date_in_raw"], shipped["shipped_date_in_lake"]) == (10392, "1998-06-15")
    assert (inserted["events"], inserted["items_by_event"], inserted["items_in_lake"]) == (4, [0, 1, 2, 3], 3)
    assert (deleted["items_in_dataset"], deleted["deleted_in_lake"]) == (0, True)


def source_query() -> str:
    """Return the dataset's query on the source."""
    return (load("northwind").folder / "order_items.source.sql").read_text().strip().rstrip(";")


def test_dataset_equals_the_source_line_by_line(demo: dict[str, Any], cli: CommandLine) -> None:
    source = cli.query_source(f"{source_query()} order by order_id, product_id")
    lake = cli.query(
        "SELECT customer_id, order_id, product_id, discount, quantity, unit_price, revenue FROM order_items "
        "ORDER BY order_id, product_id"
    )
    numbers = [
        (
            *(row[name] for name in ("customer_id", "order_id", "product_id")),
            *(Decimal(str(row[name])) for name in ("discount", "quantity", "unit_price", "revenue")),
        )
        for row in lake
    ]
    assert demo["stages"]["dataset"] == len(numbers) == len(source)
    assert numbers == source


REVENUE_BY = """
SELECT json_extract_scalar(item, '$.{field}') AS name, sum(revenue) AS revenue
FROM order_items
JOIN (
    SELECT order_id, CAST(json_extract_scalar(item, '$.product_id') AS integer) AS product_id, item
    FROM cdc_events_current
    CROSS JOIN UNNEST(CAST(json_parse(products) AS array(json))) AS products (item)
) AS product USING (order_id, product_id)
GROUP BY 1
"""
REFERRED = """
(select product_id, category_name, country from datalake.products
   join datalake.categories using (category_id) join datalake.suppliers using (supplier_id)) as product
"""


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize(("field", "groups"), [("category_name", 8), ("country", 10)])
def test_revenue_by_fields_of_the_documents_equals_the_source(cli: CommandLine, field: str, groups: int) -> None:
    """By category and by the supplier's country: fields of one table in the lake, and joins of three at the source."""
    source = cli.query_source(
        f"select {field}, sum(revenue) from ({source_query()}) as line join {REFERRED} using (product_id) group by 1"
    )
    lake = cli.query(REVENUE_BY.format(field=field))
    assert len(source) == groups
    assert {row["name"]: Decimal(str(row["revenue"])) for row in lake} == dict(source)


def test_page_equals_the_source(demo: dict[str, Any], cli: CommandLine) -> None:
    table = Page(Path(demo["dashboard"]).read_text()).tables["revenue_by_customer-table"]
    heads = [cell.strip() for cell in table[0]]
    customer, revenue, orders = (heads.index(name) for name in ("Customer", "Revenue", "Orders"))
    shown = {row[customer].strip(): (Decimal(row[revenue].strip()), int(row[orders])) for row in table[1:]}
    source = cli.query_source(
        "select customer_id, sum(revenue), count(distinct order_id) "
        f"from ({source_query()}) as line group by customer_id",
    )
    assert shown == {name: (total, count) for name, total, count in source}


def test_dots_of_the_page_equal_the_source(demo: dict[str, Any], cli: CommandLine) -> None:
    table = Page(Path(demo["dashboard"]).read_text()).tables["quantity_and_revenue-table"]
    heads = [cell.strip() for cell in table[0]]
    names = ("Customer", "Average quantity per order line", "Average revenue per order line", "Orders")
    customer, quantity, revenue, orders = (heads.index(name) for name in names)
    shown = {row[customer].strip(): row for row in table[1:]}
    source = cli.query_source(
        "select customer_id, avg(quantity)::float8, round(avg(revenue), 4), count(distinct order_id) "
        f"from ({source_query()}) as line group by customer_id",
    )
    assert shown.keys() == {row[0] for row in source}
    for name, average_quantity, average_revenue, count in source:
        row = shown[name]
        assert float(row[quantity]) == pytest.approx(average_quantity, abs=0.00006)  # four places
        assert (Decimal(row[revenue].strip()), int(row[orders])) == (average_revenue, count)


@full_only
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("demo")
def test_a_second_demo_with_scripts_has_the_same_counts(cli: CommandLine, tmp_path: Path) -> None:
    write_scripts(tmp_path)
    again = json.loads(cli.run("cdc-lake", "demo", "--json", "--sql-dir", str(tmp_path)).stdout)
    assert_demo_is_complete(again)
    before_the_first_asset = sum(again["seconds"][name] for name in ("setup", "up", "reset", "load"))
    assert before_the_first_asset < 30
