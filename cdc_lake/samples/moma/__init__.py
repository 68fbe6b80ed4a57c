"""The MoMA sample: artists and artworks of a museum, generated or from the museum's files.

The generated rows resemble the museum's collection: the shares of nationalities, genders, classifications and NULLs are
those of its file of 1,000 artists. Persons and titles are invented, except for the two that the demo changes.
"""

from __future__ import annotations

from pathlib import Path

from cdc_lake.samples.moma.generate import dataset
from cdc_lake.samples.table_sample import TableSample

MOMA = TableSample(
    title="MoMA",
    database="moma",
    schema="public",
    tables=("artists", "artworks"),
    schema_sql=Path(__file__).with_name("schema.sql"),
    generate=dataset,
    delimiter="|",
)
