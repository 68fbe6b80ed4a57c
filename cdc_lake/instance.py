"""The Dagster instance of a stack: runs, events and sensor cursors in the stack's folder, and their settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dagster as dg

from infra.files import write_atomic
from infra.folders import state_folder

_SETTINGS = """\
# Written by cdc-lake. Telemetry is off; old ticks are removed.
telemetry:
  enabled: false
# A run whose process was killed is marked as failed, so that its sensor can launch the next one.
run_monitoring:
  enabled: true
  poll_interval_seconds: 20
  start_timeout_seconds: 180
  max_runtime_seconds: 7200
# The maximum number of concurrent runs of a pool, because each loads two cores: spark for landing and applying, and
# spark_checks for comparing whole tables, for which `cdc-lake dev` sets one. Counted by run, because a step that was
# killed would keep its slot.
concurrency:
  pools:
    granularity: run
    default_limit: 2
# Dagster's default of 5 s would be added to the age of the data.
run_queue:
  dequeue_interval_seconds: 1
# Otherwise, each tick waits for those of all other sensors.
sensors:
  use_threads: true
  num_workers: 4
retention:
  sensor:
    purge_after_days: {skipped: 1, success: 30, failure: 30, started: 30}
"""


def dagster_home(home: Path | None = None) -> Path:
    """Return the folder for DAGSTER_HOME; create it or update its settings if needed."""
    folder = state_folder(home) / "dagster"
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "dagster.yaml"
    if not settings.exists() or settings.read_text(encoding="utf-8") != _SETTINGS:
        write_atomic(settings, _SETTINGS)
    return folder


def limit_comparisons(dagster: dg.DagsterInstance) -> None:
    """Let one run at a time compare whole tables, unless a person has set another limit of the pool in the UI.

    The Spark server of `cdc-lake dev` runs two jobs at a time: two comparisons would delay all commits.
    """
    from cdc_lake.pipeline.pipeline import VERIFY_POOL  # noqa: PLC0415 - dagster_home() does not need it

    storage = dagster.event_log_storage
    if all(limit.name != VERIFY_POOL or limit.from_default for limit in storage.get_pool_limits()):
        storage.set_concurrency_slots(VERIFY_POOL, 1)


def instance() -> dg.DagsterInstance:
    """Return the instance, which `cdc-lake dev` uses too."""
    import dagster as dg  # noqa: PLC0415 - dagster_home() does not need it

    return dg.DagsterInstance.from_config(str(dagster_home()))
