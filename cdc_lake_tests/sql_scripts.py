"""The generated sample as SQL scripts of somebody's own: unqualified names, plain INSERTs, like a dump's."""

from __future__ import annotations

from pathlib import Path

import psycopg2.extensions as pg

from cdc_lake.samples import northwind
from cdc_lake.samples.northwind.generate import dataset


def write_scripts(folder: Path) -> None:
    """01_ddl.sql and 02_data.sql, to be run in this order."""
    ddl = (Path(northwind.__file__).parent / "schema.sql").read_text().replace("datalake.", "")
    (folder / "01_ddl.sql").write_text(ddl)
    lines = ["SET client_encoding = 'UTF8';"]
    for table in dataset():
        columns = ", ".join(table.columns)
        lines += [
            f"INSERT INTO {table.name} ({columns}) VALUES ({', '.join(_literal(value) for value in row)});"
            for row in table.rows
        ]
    (folder / "02_data.sql").write_text("\n".join(lines) + "\n")


def _literal(value: object) -> str:
    adapted = pg.adapt(value)
    if hasattr(adapted, "encoding"):
        adapted.encoding = "utf8"
    return str(adapted.getquoted().decode())
