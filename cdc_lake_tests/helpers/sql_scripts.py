"""The generated sample as a user's SQL scripts: unqualified names and plain INSERTs, as in a dump."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg2.extensions as pg

from cdc_lake.samples import northwind
from cdc_lake.samples.northwind.generate import dataset

PUBLISHED_OUTBOX = Path(__file__).with_name("published_outbox.sql")


def write_scripts(folder: Path) -> None:
    """Write 01_ddl.sql and 02_data.sql, which run in this order."""
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


def write_published_folder(folder: Path, database: str, role: str = "devuser") -> None:
    """Write a folder like the published data lake demo's data/sql, with schema, grant and outbox."""
    write_scripts(folder)
    ddl = folder / "01_ddl.sql"
    # The folder's key types: smallint for an order, bpchar for a customer.
    narrow = re.sub(r"(order_id\s+)integer", r"\1smallint", ddl.read_text())
    ddl.write_text(narrow.replace("varchar(5)", "bpchar"))
    (folder / "00_create_schema.sql").write_text(
        f"CREATE SCHEMA datalake;\nGRANT ALL ON SCHEMA datalake TO {role};\n\nSET search_path TO datalake;\n"
        f'ALTER database "{database}" SET search_path TO datalake;'
    )
    (folder / "03_cdc_events.sql").write_text(PUBLISHED_OUTBOX.read_text())


def _literal(value: object) -> str:
    adapted = pg.adapt(value)
    if hasattr(adapted, "encoding"):
        adapted.encoding = "utf8"
    return str(adapted.getquoted().decode())
