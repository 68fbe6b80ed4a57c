"""dlt's program: copy new and changed rows of one PostgreSQL table into a Delta table on S3, by a cursor column.

It runs with dlt's own packages (environment.py) and imports nothing of cdc-lake. DLT_SETTINGS is a JSON object with
the fields database (URL), schema, table, key, cursor, sum (the summed column), bucket (URL), delta (S3 settings) and
folder (dlt's working folder). It prints the number of rows of the Delta table and the sum of a column as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import dlt
from deltalake import DeltaTable
from dlt.sources.sql_database import sql_table


def load(settings: dict[str, Any]) -> None:
    """Run dlt's pipeline once. It continues at the cursor value that is stored in the working folder and the bucket."""
    rows = sql_table(
        credentials=settings["database"],
        schema=settings["schema"],
        table=settings["table"],
        incremental=dlt.sources.incremental(settings["cursor"]),
        backend="pyarrow",
    )
    rows.apply_hints(
        primary_key=settings["key"],
        write_disposition={"disposition": "merge", "strategy": "upsert"},
        table_format="delta",
    )
    pipeline = dlt.pipeline(
        "peer", pipelines_dir=settings["folder"], destination=dlt.destinations.filesystem(settings["bucket"]),
        dataset_name="dlt",
    )  # fmt: skip
    pipeline.run(rows).raise_on_failed_jobs()


def totals(settings: dict[str, Any]) -> dict[str, int]:
    """Return the number of rows of the Delta table, and the sum of the column `settings["sum"]`."""
    table = DeltaTable(f"{settings['bucket']}/dlt/{settings['table']}", storage_options=settings["delta"])
    values = table.to_pyarrow_table(columns=[settings["sum"]])[settings["sum"]].to_pylist()
    return {"rows": len(values), "sum": sum(values)}


if __name__ == "__main__":
    dlt_settings = json.loads(os.environ["DLT_SETTINGS"])
    load(dlt_settings)
    json.dump(totals(dlt_settings), sys.stdout)
