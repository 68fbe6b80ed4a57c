"""Samples folder with its own outbox, captured unchanged: smallint key, bpchar customer, row triggers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from cdc_lake.pipeline.loading import load as load_pipeline
from cdc_lake.profile import resolved
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.northwind.loader import load, unload
from cdc_lake_tests.helpers.sql_scripts import write_published_folder
from cdc_lake_tests.integration.chain.conftest import NewPipeline

YAML = """\
type: cdc_lake.CdcPipeline
attributes:
  name: published
  source: { database: devdb, schema: datalake, tables: [cdc_events], publication: cdc_publication }
  stream: { prefix: published }
  tables: [{ name: cdc_events, key: [order_id] }]
  targets:
    - name: lake
      database: published
  datasets: [order_items.sql]
"""


@pytest.fixture
def folder_loaded(chain_stack: None, tmp_path: Path) -> Iterator[None]:  # noqa: ARG001 - the stack must run
    """Load the folder into the stack's database; unload it after the test."""
    write_published_folder(tmp_path, "devdb")
    postgres = resolved()["postgres"]
    login = postgres.login()
    server = ConnectionParameters(login.host, login.port, "devdb", login.user, login.password)
    report = load(server, tmp_path)
    assert (report.own_outbox, report.tables[-1]) == (True, ("cdc_events", 829))
    yield
    with closing(server.connect()) as connection:
        unload(connection)


@pytest.mark.usefixtures("folder_loaded")
def test_the_outbox_of_a_folder_is_captured_unchanged(new_pipeline: NewPipeline) -> None:
    northwind = load_pipeline("northwind")
    dataset = (northwind.folder / "order_items.sql").read_text()
    pipeline = new_pipeline("published", {}, {"order_items.sql": dataset}, text=YAML)
    pipeline.materialise("source", "topic", "raw", "lake", "dataset")
    assert dict(pipeline.types("cdc_events")).items() >= {"order_id": "int", "customer_id": "string"}.items()
    assert pipeline.by_athena("SELECT count(*), count(DISTINCT order_id) FROM cdc_events_current") == [(829, 829)]
    assert pipeline.by_athena("SELECT count(*) FROM order_items") == [(2152,)]

    pipeline.execute("update orders set shipped_date = '1998-06-15' where order_id = 10249")
    pipeline.execute(
        "update order_details set unit_price = 12500.55, quantity = 2, discount = 0 where order_id = 10248"
    )
    pipeline.land_and_apply()
    assert pipeline.dead_letters() == []
    order = "SELECT customer_id, CAST(shipped_date AS varchar) FROM cdc_events_current WHERE order_id = 10249"
    assert pipeline.by_athena(order) == [
        (pipeline.execute("select customer_id::text from orders where order_id = 10249")[0][0], "1998-06-15")
    ]
    assert set(pipeline.by_athena("SELECT unit_price, revenue FROM order_items WHERE order_id = 10248")) == {
        (Decimal("12500.55"), Decimal("25001.1000"))
    }
    # The tutorial's query reads the documents of our outbox and of this one.
    tutorial = (Path(__file__).parents[3] / "docs" / "tutorial.md").read_text()
    (revenue,) = re.findall(r'cdc-lake query "\n(WITH product .*?)"\n', tutorial, re.DOTALL)
    source = (northwind.folder / "order_items.source.sql").read_text()
    assert set(pipeline.by_athena(revenue)) == set(
        pipeline.execute(
            f"select category_name, country, sum(revenue) from ({source}) as line join products using (product_id) "
            "join categories using (category_id) join suppliers using (supplier_id) group by 1, 2"
        )
    )
