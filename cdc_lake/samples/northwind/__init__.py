"""The Northwind sample: its tables (schema.sql), its outbox (outbox.sql) and a generator of its data.

The data is made up by `generate.dataset()`; it has the shape of the well-known Northwind database (who buys
how much, in how many lines, when), none of its names.
"""

from __future__ import annotations

from pathlib import Path

SCHEMA_SQL = Path(__file__).with_name("schema.sql")
OUTBOX_SQL = Path(__file__).with_name("outbox.sql")
