"""The YAML of the shop as a polled pipeline."""

from __future__ import annotations

QUERY = """\
type: cdc_lake.CdcPipeline
attributes:
  name: shop
  source: { kind: query, database: shopdb, schema: sales, poll_seconds: 5 }
  stream: { prefix: shop }
  tables:
    - name: orders
      key: [order_id]
      poll: { mode: timestamp, timestamp: changed }
    - name: order_countries
      key: [order_id]
      topic: alt.orders
      poll: { mode: timestamp, timestamp: changed, table: orders, sql: order_countries.sql }
"""
