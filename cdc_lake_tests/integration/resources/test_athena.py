"""A Hudi table that Spark writes, in the emulated Glue, read with Athena's SQL by Trino."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

import cdc_lake
from cdc_lake.dashboard import Rows, load_dashboard
from cdc_lake.dashboard.quicksight import row_checksum
from cdc_lake.pipeline.loading import load
from cdc_lake_tests.integration.conftest import QueryStack
from resources.athena import Athena, AthenaQueryFailed
from resources.errors import Unreachable, WaitTimedOut
from resources.glue.catalog import GlueCatalog, GlueColumn, hudi_table, merge_on_read

TESTS_IN_CI = 7

COLUMNS = [
    GlueColumn("order_id", "int"),
    GlueColumn("freight", "decimal(6,2)"),
    GlueColumn("shipped_date", "date"),
    GlueColumn("ordered_at", "timestamp"),
    GlueColumn("order_items", "string"),
    GlueColumn("__deleted", "boolean"),
    GlueColumn("score", "double"),
    GlueColumn("lsn", "bigint"),
]
LINES = """
CREATE OR REPLACE VIEW lake_test.order_lines AS
SELECT order_id,
       CAST(json_extract_scalar(item, '$.quantity') AS integer) AS quantity,
       CAST(json_extract_scalar(item, '$.unit_price') AS decimal(6,2)) AS unit_price
FROM lake_test.orders
CROSS JOIN UNNEST(CAST(json_parse(order_items) AS array(json))) AS t(item)
WHERE NOT __deleted
"""


ORDER_ITEMS = """
CREATE OR REPLACE VIEW datalake.order_items AS
SELECT * FROM (VALUES
    ('ALFKI', 1, 2, DECIMAL '3.50', DECIMAL '0.00', DECIMAL '7.0000'),
    ('ALFKI', 1, 4, DECIMAL '1.00', DECIMAL '0.25', DECIMAL '3.0000'),
    ('BERGS', 2, 1, DECIMAL '{price}', NULL, DECIMAL '9.9900')
) AS lines (customer_id, order_id, quantity, unit_price, discount, revenue)
"""


@pytest.fixture(scope="module")
def glue(query_stack: QueryStack) -> GlueCatalog:
    at = query_stack.at
    return GlueCatalog(
        endpoint_url=at.aws_endpoint, access_key=at.s3_access_key, secret_key=at.s3_secret_key.get_secret_value()
    )


@pytest.fixture(scope="module")
def athena(query_stack: QueryStack) -> Athena:
    return query_stack.athena("lake_test", hint="Run `cdc-lake up`.", attempts=2)


@pytest.fixture(scope="module", autouse=True)
def _orders(query_stack: QueryStack, glue: GlueCatalog, athena: Athena) -> None:
    """Create the table on S3 and in Glue, and the view on it."""
    at = query_stack.at
    path = f"s3a://{at.bucket}/lake/orders"
    writer = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("hudi_orders.py")), at.s3_endpoint, str(at.spark_jars), path],
        env={
            **os.environ,
            "JAVA_HOME": str(at.java_home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "S3_ACCESS_KEY": at.s3_access_key,
            "S3_SECRET_KEY": at.s3_secret_key.get_secret_value(),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert writer.returncode == 0, writer.stderr[-3000:]
    glue.ensure_database("lake_test")
    assert glue.put_table(hudi_table("lake_test", "orders", path, COLUMNS)) is True
    athena.execute(LINES)


def test_a_hudi_table_is_read_with_its_types(athena: Athena) -> None:
    result = athena.query(
        "SELECT order_id, freight, shipped_date, ordered_at, __deleted, score, lsn FROM orders ORDER BY order_id"
    )

    assert [kind for _, kind in result.columns] == [
        "integer", "decimal", "date", "timestamp", "boolean", "double", "bigint",
    ]  # fmt: skip
    first, second, third = result.rows
    moment = datetime(1998, 5, 6, 10, 11, 12, 123456)
    assert first == (1, Decimal("11.25"), date(1998, 5, 6), moment, False, 1.5, 99)
    assert second[:5] == (2, Decimal("-0.05"), None, None, False)
    assert math.isnan(second[5])
    assert third == (3, None, date(1969, 12, 31), datetime(2024, 2, 29, 23, 59, 59), True, None, 30)
    assert result.bytes_scanned > 0


def test_a_view_unnests_the_json(athena: Athena, glue: GlueCatalog) -> None:
    assert athena.query("SELECT * FROM order_lines ORDER BY order_id, quantity").rows == (
        (1, 2, Decimal("3.50")),
        (2, 1, Decimal("9.99")),
        (2, 4, Decimal("1.00")),
    )
    assert glue.table_names("lake_test") == ["order_lines", "orders"]
    view = glue.get_table("lake_test", "order_lines")
    assert view is not None
    assert view.table_type == "VIRTUAL_VIEW"


@pytest.mark.parametrize("price", ["9.8", "9999.99", "10000", "12500.55", "9999999999.99"])
def test_northwinds_order_lines_of_any_price_are_read(athena: Athena, price: str) -> None:
    """The dataset's own SQL on one document, with prices as in our outbox and in the published demo's."""
    items = f'[{{"product_id": 2, "quantity": 3, "unit_price": {price}, "discount": 0.5}}]'
    dataset = (load("northwind").folder / "order_items.sql").read_text()
    (row,) = athena.query(
        f"WITH cdc_events_current (customer_id, order_id, order_items) AS (VALUES ('ALFKI', 1, '{items}')) {dataset}"
    ).rows
    assert row == ("ALFKI", 1, 2, Decimal("0.50"), 3, Decimal(price), Decimal(price) * 3 / 2)


def test_the_checksum_of_a_dashboards_rows_changes_with_a_value(query_stack: QueryStack) -> None:
    """A run compares checksums to decide whether QuickSight has to read the rows again."""
    lake = query_stack.athena("datalake")
    northwind = load_dashboard(Path(cdc_lake.__file__).parent / "defs" / "northwind" / "customers.yaml")

    def query(sql: str) -> Rows:
        found = lake.query(sql)
        return Rows(tuple(name for name, _ in found.columns), found.rows)

    lake.execute(ORDER_ITEMS.format(price="9.99"))
    try:
        before = row_checksum(northwind, query)
        assert before.startswith("3 ")
        assert row_checksum(northwind, query) == before
        lake.execute(ORDER_ITEMS.format(price="8.99"))
        after = row_checksum(northwind, query)
        assert after.startswith("3 ")
        assert after != before
    finally:
        lake.execute("DROP VIEW datalake.order_items")


def test_a_merge_on_read_table_is_two_tables_in_glue(
    query_stack: QueryStack, athena: Athena, glue: GlueCatalog
) -> None:
    path = f"s3a://{query_stack.at.bucket}/lake/orders_merged"
    two = merge_on_read(hudi_table("lake_test", "merged", path, COLUMNS))
    for each in two:
        assert glue.put_table(each) is True

    try:
        # Trino's Hudi connector does not read log files, so both tables have the rows of the base files; Athena merges
        # the log files into `_rt`.
        for name in ("merged_ro", "merged_rt"):
            rows = athena.query(f"SELECT order_id, freight, lsn FROM {name} ORDER BY order_id").rows
            assert rows == ((1, Decimal("10.50"), 10), (2, Decimal("-0.05"), 20), (3, None, 30))
    finally:
        for each in two:
            glue.delete_table(each.database, each.name)


def test_an_equal_table_is_not_put_again(query_stack: QueryStack, glue: GlueCatalog) -> None:
    same = hudi_table("lake_test", "orders", f"s3a://{query_stack.at.bucket}/lake/orders", COLUMNS)

    assert glue.put_table(same) is False


def test_a_column_added_to_the_catalog_is_visible_at_once(
    query_stack: QueryStack, athena: Athena, glue: GlueCatalog
) -> None:
    path = f"s3a://{query_stack.at.bucket}/lake/orders"
    try:
        glue.put_table(hudi_table("lake_test", "orders", path, [*COLUMNS, GlueColumn("ship_city", "string")]))

        assert athena.query("SELECT count(ship_city), count(*) FROM orders").rows == ((0, 3),)
    finally:
        glue.put_table(hudi_table("lake_test", "orders", path, COLUMNS))


def test_tables_and_views_survive_a_kill_of_the_endpoint(query_stack: QueryStack, athena: Athena) -> None:
    query_stack.kill("aws")
    try:
        with pytest.raises(Unreachable, match="Run `cdc-lake up`"):
            athena.query("SELECT 1")
    finally:
        query_stack.repair()

    assert athena.query("SELECT count(*) FROM order_lines").rows == ((3,),)


def test_tables_and_views_survive_a_kill_of_the_engine(query_stack: QueryStack, athena: Athena) -> None:
    query_stack.kill("trino")
    try:
        with pytest.raises(AthenaQueryFailed, match="engine did not answer") as failed:
            athena.query("SELECT 1")
        assert failed.value.user_message.endswith("Run `cdc-lake up`.")
    finally:
        query_stack.repair()

    assert athena.query("SELECT count(*) FROM order_lines").rows == ((3,),)


def test_a_query_is_stopped_after_its_timeout(athena: Athena) -> None:
    limited = athena.model_copy(update={"query_timeout_seconds": 1.0})
    numbers = "UNNEST(sequence(1, 10000))"

    with pytest.raises(WaitTimedOut, match="was stopped"):
        limited.query(f"SELECT count(*) FROM {numbers} a(x), {numbers} b(x), {numbers} c(x)")


def test_a_missing_table_is_named(athena: Athena) -> None:
    with pytest.raises(AthenaQueryFailed, match=r"TABLE_NOT_FOUND.*nowhere.*Materialise"):
        athena.query("SELECT * FROM nowhere")
