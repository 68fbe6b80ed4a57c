"""The profilers: Spark's jobs from an event log, the time in which one ran, and functions of this process."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from benchmarks.measures.processes import ROOT
from benchmarks.measures.profilers import SparkJob, python_samples, seconds_in_jobs, spark_jobs


def started(job: int, stages: dict[int, str], at: int, description: str | None = None) -> dict[str, object]:
    properties = {} if description is None else {"spark.job.description": description}
    infos = [{"Stage ID": stage, "Stage Name": name} for stage, name in stages.items()]
    return {
        "Event": "SparkListenerJobStart", "Job ID": job, "Submission Time": at, "Stage IDs": list(stages),
        "Stage Infos": infos, "Properties": properties,
    }  # fmt: skip


def task(stage: int, nanoseconds: int) -> dict[str, object]:
    metrics = {"Executor CPU Time": nanoseconds}
    return {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Metrics": metrics}


def ended(job: int, at: int) -> dict[str, object]:
    return {"Event": "SparkListenerJobEnd", "Job ID": job, "Completion Time": at}


def test_jobs_have_their_own_tasks_and_the_name_of_what_started_them(tmp_path: Path) -> None:
    events = [
        started(0, {0: "map", 1: "collect at upsert"}, 10_000),
        task(0, 300_000_000),
        task(1, 200_000_000),
        ended(0, 11_000),
        # Stage 1 was computed by the job before, and is skipped here.
        started(1, {1: "collect at upsert", 2: "save"}, 12_000, "Doing the write"),
        task(2, 400_000_000),
        ended(1, 12_500),
        started(2, {3: f"save at {ROOT}/cdc_lake/writer.py:7"}, 13_000, ":"),
        ended(2, 14_000),
        started(3, {4: "list"}, 15_000, "Listing s3a://bucket/table/20261128015003705"),
        ended(3, 16_000),
        started(4, {5: "not ended"}, 17_000),
    ]
    (tmp_path / "local-1").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert spark_jobs(tmp_path) == [
        SparkJob("collect at upsert", 10, 11, tasks=2, cpu_seconds=0.5),
        SparkJob("Doing the write", 12, 12.5, tasks=1, cpu_seconds=0.4),
        SparkJob("save at cdc_lake/writer.py:7", 13, 14, tasks=0, cpu_seconds=0),
        SparkJob("Listing …", 15, 16, tasks=0, cpu_seconds=0),
    ]


def test_seconds_in_which_two_jobs_ran_count_once() -> None:
    spans = [(3.0, 4.0), (0.0, 1.0), (0.5, 2.0), (0.75, 1.5)]
    assert seconds_in_jobs([SparkJob("", *span, tasks=1, cpu_seconds=0) for span in spans]) == 3
    assert seconds_in_jobs([]) == 0


def spin(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_the_function_that_ran_has_most_of_the_samples(tmp_path: Path) -> None:
    try:
        with python_samples(tmp_path / "samples.txt") as samples:
            spin(1)
    except RuntimeError as error:
        if "Permission" not in str(error):
            raise
        pytest.skip("this user may not trace its own processes")
    (function, count), *_ = samples.most_common(1)
    assert "spin" in function
    assert count > samples.total() / 2
