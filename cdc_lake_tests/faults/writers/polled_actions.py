"""Actions of a writer on a small polled pipeline. Each takes the folder of the pipeline's definitions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from cdc_lake.demo import verification
from cdc_lake.demo.graph import Graph
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.operations import polling, reconciliation
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.source_health import polled_source
from cdc_lake.profile import resolved, spark
from cdc_lake_tests.faults.writers import writer_actions  # noqa: F401 - it shortens leases
from cdc_lake_tests.helpers.pipeline_graph import graph

NAME = "polled_kills"
YAML = """\
type: cdc_lake.CdcPipeline
attributes:
  name: {name}
  source: {{ kind: query, database: devdb, schema: {name} }}
  stream: {{ prefix: {name} }}
  landing: {{ format: {landed_format} }}
  tables: [{{ name: goods, key: [id], poll: {{ timestamp: changed }} }}]
  targets:
    - {{ name: files, database: {name}, format: parquet }}
    - {{ name: lake, database: {name}_lake }}
  datasets: [{{ sql: goods_by_kind.sql, partition_by: [kind] }}]
"""
_BOUND_SECONDS = 60.0


def write_definitions(defs: Path, landed_format: str) -> Pipeline:
    """Write the pipeline's files below a folder, and return the pipeline."""
    (defs / NAME).mkdir()
    (defs / NAME / "defs.yaml").write_text(YAML.format(name=NAME, landed_format=landed_format))
    (defs / NAME / "goods_by_kind.sql").write_text("SELECT id, kind, v FROM goods_latest\n")
    return load(NAME, defs)


@cache
def _graph(defs: Path) -> Graph:
    return graph(load(NAME, defs), checked=())


def materialise(defs: Path, *stages: str) -> None:
    """Materialise stages. Raises what a stage raises."""
    _graph(defs).materialise(*stages)


def poll(defs: Path) -> None:
    """Materialise the topic once a poll sees all that is committed."""
    pipeline = load(NAME, defs)
    polled_source.await_visible(pipeline.tables[0], pipeline.source_postgres(resolved()["postgres"]), _BOUND_SECONDS)
    materialise(defs, "topic")


def reconcile(defs: Path) -> int:
    """Send deletes for the rows that the source does not have any more, and return their number."""
    pipeline, found = load(NAME, defs), resolved()
    postgres = pipeline.source_postgres(found["postgres"])
    owner = f"writer {os.getpid()}"
    systems = polling.PollSystems(postgres, found["kafka"], location(found["store"]), spark().run, owner)
    report = reconciliation.reconcile(pipeline.tables[0].in_reconciled_target, systems).report
    return 0 if report is None else report.deletes


def verify(defs: Path) -> Mapping[str, bool]:
    """Compare the tables of all targets with the source, and return by lake table whether they are equal."""
    compared = verification.compare(load(NAME, defs), resolved(), spark())
    return {name: found["clean"] and found["compared"] > 0 for name, found in compared.items()}
