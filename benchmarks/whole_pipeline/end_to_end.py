"""Measure a pipeline from PostgreSQL to a lake table, compared with dlt: a first load, and 1% of changes.

Starts a separate stack. cdc-lake captures the table (snapshot and log by Debezium, Kafka, raw objects, Hudi table) and
materialises its assets. dlt reads the same table by a cursor column and merges it into a Delta table on the same S3
server. CPU seconds are those of all processes, the stack's engines included. The program fails if the number of
rows or the sum of a column differs between the two tables. benchmarks/README.md compares what cdc-lake and dlt
guarantee.

    python -m benchmarks.whole_pipeline.end_to_end --rows 100000
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.goals import DLT
from benchmarks.measures.pipeline_stack import running_pipeline_stack
from benchmarks.measures.usage import Usage, measured
from benchmarks.peers.dlt_process import environment
from benchmarks.report.figures import OURS, Figure
from benchmarks.report.results import Recorder
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import Endpoints

STEPS = ("first load", "1% changed")
SCHEMA, TABLE = "whole", "goods"
CREATE = (
    "create table goods (id int primary key, v bigint not null, note text, changed timestamptz not null default now())"
)
FILL = "insert into goods select n, n, repeat('x', 200) from generate_series(1, %s) n"
CHANGE = "update goods set v = v + 1, changed = now() where mod(id, 100) = 1"
TOTALS = 'select count(*), sum(v) from "goods_current"'


def dlt_settings(at: Endpoints, folder: Path) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Return the settings of dlt's program, and its environment variables."""
    password, secret = at.postgres_password.get_secret_value(), at.s3_secret_key.get_secret_value()
    server = f"{at.postgres_host}:{at.postgres_port}/{at.postgres_database}"
    access = {"aws_access_key_id": at.s3_access_key, "aws_secret_access_key": secret}
    delta = {"endpoint_url": at.s3_endpoint, "region": at.region, "allow_http": "true"}
    settings = {
        "database": f"postgresql+psycopg2://{at.postgres_user}:{password}@{server}",
        "schema": SCHEMA,
        "table": TABLE,
        "key": "id",
        "cursor": "changed",
        "sum": "v",
        "bucket": f"s3://{at.bucket}",
        "folder": str(folder),
        "delta": {**access, **delta},
    }
    prefix = "DESTINATION__FILESYSTEM__"
    return settings, {
        **{f"{prefix}CREDENTIALS__{name.upper()}": value for name, value in access.items()},
        f"{prefix}CREDENTIALS__ENDPOINT_URL": at.s3_endpoint,
        f"{prefix}CREDENTIALS__REGION_NAME": at.region,
        f"{prefix}DELTALAKE_STORAGE_OPTIONS": '{"allow_http": "true"}',
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
        "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
    }


def measure(home: Path, folder: Path, rows: int) -> dict[tuple[str, str], Usage]:
    """Run each step with both systems; return the usage by step and system.

    Raises RuntimeError if the two tables differ.
    """
    pipeline = ChainPipeline(SCHEMA, folder, {TABLE: ""})
    pipeline.execute(CREATE)
    settings, variables = dlt_settings(load_endpoints(home), folder / "dlt")
    environment.packages()
    used = {}
    for what in STEPS:
        if what == STEPS[0]:
            pipeline.execute(FILL, rows)
            _, started = measured(lambda: pipeline.materialise("source", "topic"))
        else:
            pipeline.execute(CHANGE)
            started = Usage(0, 0)
        _, applied = measured(pipeline.land_and_apply)
        used[what, OURS] = started + applied
        theirs, used[what, DLT] = measured(lambda: environment.run(settings, variables))
        if (found := pipeline.by_athena(TOTALS)) != [(theirs["rows"], theirs["sum"])]:
            raise RuntimeError(
                f"Cannot compare the systems: after step {what!r}, cdc-lake has (rows, sum of v) = {found[0]}, and "
                f"dlt has ({theirs['rows']}, {theirs['sum']}). Fix the cause, then run the benchmark again."
            )
    pipeline.stop()
    return used


def main() -> int:
    """Run the benchmark, and print seconds and CPU seconds by step and system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    recorder = Recorder(parser)
    options = parser.parse_args()
    with running_pipeline_stack() as (home, folder):
        used = measure(home, folder, options.rows)
    table = Table("step", "system", "wall s", "CPU s", title=f"{options.rows:,} rows")
    figures = []
    for (what, system), cost in used.items():
        table.add_row(what, system, f"{cost.seconds:.1f}", f"{cost.cpu_seconds:.1f}")
        for unit, value in (("s", cost.seconds), ("CPU s", cost.cpu_seconds)):
            figures.append(Figure(what=f"end to end, {what}", unit=unit, system=system, value=round(value, 2)))
    Console(width=100).print(table)
    recorder.write(options, "end_to_end", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
