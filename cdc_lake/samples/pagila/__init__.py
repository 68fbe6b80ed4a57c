"""The Pagila sample: the films, customers and addresses of a film rental, generated or from a dump of Pagila.

The tables have the columns, types, keys and triggers of the published Pagila, except that `film.rating` is NOT NULL
(schema.sql has the reason). The generated rows have its numbers of
rows; titles, persons and cities are invented.
"""

from __future__ import annotations

from pathlib import Path

from cdc_lake.samples.pagila.generate import dataset
from cdc_lake.samples.table_sample import TableSample

_TABLES = (
    "actor", "address", "category", "city", "country", "customer", "film", "film_actor", "film_category", "inventory",
    "language", "payment", "staff", "store",
)  # fmt: skip

PAGILA = TableSample(
    title="Pagila",
    database="pagila",
    schema="public",
    tables=_TABLES,
    schema_sql=Path(__file__).with_name("schema.sql"),
    generate=dataset,
    scripts=True,
)
