"""Measure how long a pipeline of several small tables takes to materialise; the limit for six is 45 seconds.

Starts a separate stack for each number of tables. The first run creates connector, slot, topics and lake tables, and
waits for the snapshot; the next runs land and apply one new row of each table. Each run is a process of its own,
measured from its start to its end: it loads the definitions and starts Spark. All light checks are included.

    python -m benchmarks.whole_pipeline.several_tables --tables 1 6 50
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import dagster as dg
from psycopg2 import sql
from rich.console import Console
from rich.table import Table

from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder
from cdc_lake.demo.graph import Graph
from cdc_lake.instance import instance
from cdc_lake.pipeline import component, table_progress
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.pipeline import STAGES
from cdc_lake.profile import resolved, run_resources

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]
LIMITED_TABLES = 6
NAME = "several"
ROWS = 100
SHOWN_SECONDS = 1.0
"""Steps that take at least this long are shown; the others are in the sums by stage."""
YAML = """\
type: cdc_lake.CdcPipeline
attributes:
  name: {name}
  source: {{ database: devdb, schema: {name}, tables: [{tables}], publication: {name} }}
  stream: {{ prefix: {name} }}
  landing: {{}}
  tables:
{declared}
  targets:
    - {{ name: lake, database: {name} }}
"""


def create_tables(tables: list[str], folder: Path) -> None:
    """Create the tables at the source, and the pipeline's YAML below the folder."""
    declared = "\n".join(f"    - {{ name: {table}, key: [id] }}" for table in tables)
    (folder / NAME).mkdir()
    (folder / NAME / "defs.yaml").write_text(YAML.format(name=NAME, tables=", ".join(tables), declared=declared))
    with resolved()["postgres"].connect() as connection, connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(NAME)))
        for table in tables:
            cursor.execute(sql.SQL("CREATE TABLE {} (id int PRIMARY KEY, v text)").format(sql.Identifier(NAME, table)))
    insert(tables, 0, ROWS)


def insert(tables: list[str], first: int, rows: int) -> None:
    """Insert rows into each table."""
    with resolved()["postgres"].connect() as connection, connection.cursor() as cursor:
        for table in tables:
            statement = sql.SQL("INSERT INTO {} SELECT n, 'v' || n FROM generate_series(%s, %s) AS n")
            cursor.execute(statement.format(sql.Identifier(NAME, table)), (first, first + rows - 1))


def materialise(folder: Path) -> dict[str, float]:
    """Materialise all stages with their light checks; return the seconds of each step and of what is before the run."""
    started = time.monotonic()
    pipeline = load(NAME, folder)
    definitions = dg.Definitions.merge(
        component.build(pipeline), dg.Definitions(resources=run_resources(), executor=dg.in_process_executor)
    )
    with instance() as dagster:
        graph = Graph(NAME, definitions, dagster)
        before = time.monotonic() - started
        graph.materialise(*STAGES, light=True)
        [run] = dagster.get_runs(limit=1)
        stats = dagster.get_run_step_stats(run.run_id)
    steps = {each.step_key: each.end_time - each.start_time for each in stats if each.end_time and each.start_time}
    return {"before the run": before, **steps, "in this process": time.monotonic() - started}


def timed(folder: Path) -> tuple[float, Mapping[str, float]]:
    """Run materialise() in a new process; return its seconds, and what it returns. Raises CalledProcessError."""
    started = time.monotonic()
    command = [sys.executable, "-m", "benchmarks.whole_pipeline.several_tables", "--materialise", str(folder)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return time.monotonic() - started, json.loads(done.stdout.splitlines()[-1])


def wait_for_changes(folder: Path) -> None:
    """Wait until Kafka has everything that the source has committed."""
    found, pipeline = resolved(), load(NAME, folder)
    table_progress.barrier(pipeline.source_postgres(found["postgres"]), found["kafka"], found["connect"], pipeline, 120)


def by_stage(steps: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of the assets and of the checks of each stage; steps of a run are one after another."""
    found: dict[str, float] = {}
    for name, seconds in steps.items():
        _, stage, step = name.split("__") if name.count("__") == 2 else ("", name, f"_{name}")
        label = stage if step.endswith(f"_{stage}") else f"checks of {stage}"
        found[label] = found.get(label, 0.0) + seconds
    return found


def report(tables: int, rounds: int, folder: Path) -> tuple[float, float]:
    """Measure and print; return the seconds of the first run, and the median of the next ones."""
    names = [f"t{number}" for number in range(tables)]
    create_tables(names, folder)
    runs = [("first run", *timed(folder))]
    for number in range(rounds):
        insert(names, ROWS + number, 1)
        wait_for_changes(folder)
        runs.append((f"run {number + 2}, one new row in each", *timed(folder)))
    console = Console(width=110)
    table = Table("step", *(name for name, _, _ in runs), title=f"{tables} tables, seconds")
    slow = {step for _, _, steps in runs for step, seconds in steps.items() if seconds >= SHOWN_SECONDS}
    for step in (step for step in {**runs[0][2], **runs[-1][2]} if step in slow and "__" in step):
        table.add_row(step, *(f"{steps.get(step, 0.0):.1f}" for _, _, steps in runs))
    table.add_section()
    for step in {**by_stage(runs[0][2]), **by_stage(runs[-1][2])}:
        table.add_row(step, *(f"{by_stage(steps).get(step, 0.0):.1f}" for _, _, steps in runs))
    table.add_section()
    table.add_row("whole process", *(f"{seconds:.1f}" for _, seconds, _ in runs))
    console.print(table)
    return runs[0][1], statistics.median(seconds for _, seconds, _ in runs[1:])


def measure(tables: int, rounds: int) -> list[Figure]:
    """Measure one number of tables on a separate stack, and print; return its figures."""
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # PostgreSQL's user needs access to the subfolder
        os.environ["CDC_LAKE_HOME"] = str(folder / "home")
        try:
            subprocess.run([str(BIN / "cdc-lake"), "up"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            first, later = report(tables, rounds, folder)
        finally:
            subprocess.run([str(BIN / "cdc-lake"), "down"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    found = [
        Figure(what="first run, by tables", unit="s", value=round(first, 1), size=tables),
        Figure(what="one new row in each table, by tables", unit="s", value=round(later, 1), size=tables),
    ]
    if tables == LIMITED_TABLES:
        found.append(Figure(what="six tables, the longest run", unit="s", value=round(max(first, later), 1)))
    return found


def main() -> int:
    """Run it, and print the seconds of each number of tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, nargs="+", default=[6])
    parser.add_argument("--rounds", type=int, default=2, help="runs after the first one")
    parser.add_argument("--materialise", type=Path, help=argparse.SUPPRESS)
    recorder = Recorder(parser)
    options = parser.parse_args()
    if options.materialise:
        print(json.dumps(materialise(options.materialise)))
        return 0
    figures = [figure for tables in options.tables for figure in measure(tables, options.rounds)]
    recorder.write(options, "several_tables", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
