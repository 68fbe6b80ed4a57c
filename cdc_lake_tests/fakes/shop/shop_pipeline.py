"""The fictitious shop's pipeline: its YAML, its SQL, and its source columns."""

from __future__ import annotations

from pathlib import Path

YAML = """\
type: cdc_lake.CdcPipeline

attributes:
  name: shop
  owners: ["team:shop", "me@example.com"]
  source:
    database: shopdb
    schema: sales
    tables: [orders, customers]
    publication: shop_publication
    checks: [orders_have_customers.sql]
  stream: { prefix: shop }
  landing: { flush_seconds: 30, flush_records: 5 }
  tables:
    - name: orders
      key: [order_id]
    - name: customers
      key: [customer_id]
      partition_by: [country]
  targets:
    - name: lake
      database: shop_lake
  datasets: [totals.sql, countries.sql]
  freshness: { topic: 1m, raw: 2m, lake: 10m }
  replay_window: 12h
  retained_wal_limit_mb: 1
"""
SQL = {
    "orders_have_customers.sql": """
SELECT o.order_id FROM sales.orders o LEFT JOIN sales.customers c USING (customer_id) WHERE c.customer_id IS NULL;
""",
    "totals.sql": "SELECT customer_id, CAST(total AS decimal(6, 2)) AS total FROM orders_current\n",
    "totals.source.sql": "SELECT customer_id, total FROM sales.orders",
    "countries.sql": "SELECT DISTINCT country FROM customers_current",
}
COLUMNS = {
    "orders": {"order_id": "integer", "customer_id": "text", "total": "numeric(6,2)"},
    "customers": {"customer_id": "text", "country": "text"},
}
HEARTBEATS = "shop.sales.cdc_heartbeat"


def write_shop(defs: Path, yaml: str = YAML) -> Path:
    """Write the shop's pipeline below a folder of definitions. Return the pipeline's folder."""
    folder = defs / "shop"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "defs.yaml").write_text(yaml)
    for name, text in SQL.items():
        (folder / name).write_text(text)
    return folder
