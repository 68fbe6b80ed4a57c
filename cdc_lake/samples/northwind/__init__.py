"""The Northwind sample: its tables (schema.sql), its outbox (outbox.sql) and a generator of its data.

`generate.dataset()` generates the data. Its distributions (customers, amounts, lines per order, dates) resemble those
of the original Northwind database; all names are invented.
"""

from __future__ import annotations

from pathlib import Path

SCHEMA_SQL = Path(__file__).with_name("schema.sql")
OUTBOX_SQL = Path(__file__).with_name("outbox.sql")
