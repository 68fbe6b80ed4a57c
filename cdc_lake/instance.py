"""Dagster's own state of a stack: runs, events and sensor cursors, in the stack's folder.

Here: the folder and its settings. Not here: what runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dagster as dg

from infra.local.files import write_atomic
from infra.local.stack.state_folder import find_home

_SETTINGS = """\
# Written by cdc-lake. Nothing is reported to anybody; old ticks are removed.
telemetry:
  enabled: false
# A run whose process was killed is marked as failed, so that its sensor goes on.
run_monitoring:
  enabled: true
  poll_interval_seconds: 20
  start_timeout_seconds: 180
  max_runtime_seconds: 7200
# At most so many runs of one pool at once (spark: landing and applying; spark_checks: comparing whole tables): each of
# them has a Spark session. Counted by run, because a step that was killed would keep its slot.
concurrency:
  pools:
    granularity: run
    default_limit: 2
retention:
  sensor:
    purge_after_days: {skipped: 1, success: 30, failure: 30, started: 30}
"""


def dagster_home(home: Path | None = None) -> Path:
    """The folder for DAGSTER_HOME, made with its settings if it is missing."""
    folder = find_home(home).path / "dagster"
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "dagster.yaml"
    if not settings.exists() or settings.read_text() != _SETTINGS:
        write_atomic(settings, _SETTINGS)
    return folder


def instance() -> dg.DagsterInstance:
    """The instance that the UI shows too."""
    import dagster as dg  # noqa: PLC0415 - dagster_home() does not need it

    return dg.DagsterInstance.from_config(str(dagster_home()))
