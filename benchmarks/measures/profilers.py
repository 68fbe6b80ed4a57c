"""Profilers of a Spark session and of the Python process that drives it: event log, Flight Recorder, py-spy.

They slow a process by a few per cent, so that their shares of time are what counts, not their seconds.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from benchmarks.measures.processes import BIN, ROOT

JDK = ("java.", "javax.", "jdk.", "sun.", "scala.")
"""Packages whose time counts for the method that called them."""
SAMPLES_A_SECOND = 100
_PATH = re.compile(r"\S+://\S+")
STOP_SECONDS = 30
"""The time limit for py-spy to end after its signal."""


@dataclass(frozen=True)
class SparkJob:
    """A Spark job: what started it, its interval in epoch seconds, its tasks and their CPU seconds."""

    name: str
    started: float
    ended: float
    tasks: int
    cpu_seconds: float


def event_log_settings(folder: Path) -> str:
    """Return the Spark settings, in the format of a properties file, that write the event log to a folder."""
    return f"spark.eventLog.enabled true\nspark.eventLog.compress false\nspark.eventLog.dir {folder.as_uri()}\n"


def spark_jobs(folder: Path) -> list[SparkJob]:
    """Return the finished jobs of the only application whose event log is in the folder. Read it after Spark has ended.

    A job's name is its description, which Hudi sets, or else the call that started its last stage.
    """
    (path,) = folder.iterdir()
    started: dict[int, dict[str, Any]] = {}
    job_of_stage: dict[int, int] = {}
    tasks: Counter[int] = Counter()
    cpu_nanoseconds: Counter[int] = Counter()
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        match event["Event"]:
            case "SparkListenerJobStart":
                started[event["Job ID"]] = event
                # A stage that a later job lists again is skipped there: its tasks belong to the first.
                for stage in event["Stage IDs"]:
                    job_of_stage.setdefault(stage, event["Job ID"])
            case "SparkListenerTaskEnd" if "Task Metrics" in event:
                job = job_of_stage[event["Stage ID"]]
                tasks[job] += 1
                cpu_nanoseconds[job] += event["Task Metrics"]["Executor CPU Time"]
            case "SparkListenerJobEnd":
                job = event["Job ID"]
                begin, end = started[job]["Submission Time"] / 1000, event["Completion Time"] / 1000
                found.append(SparkJob(_name(started[job]), begin, end, tasks[job], cpu_nanoseconds[job] / 1e9))
    return found


def _name(start: dict[str, Any]) -> str:
    last = max(start["Stage Infos"], key=lambda stage: stage["Stage ID"])
    described = str(start.get("Properties", {}).get("spark.job.description") or "")
    # Hudi's description is ":" if it has none.
    return _PATH.sub("…", described.strip(": ") or last["Stage Name"]).replace(f"{ROOT}/", "")


def seconds_in_jobs(jobs: list[SparkJob]) -> float:
    """Return the seconds in which at least one of the jobs ran."""
    total, until = 0.0, 0.0
    for job in sorted(jobs, key=lambda job: job.started):
        total += max(0.0, job.ended - max(job.started, until))
        until = max(until, job.ended)
    return total


@contextmanager
def java_samples(session: SparkSession, path: Path) -> Iterator[Counter[str]]:
    """Sample the Java methods of the session's JVM with its Flight Recorder, by way of a recording in `path`.

    The counter is filled at the end: samples by method. A method of the JDK or of Scala's library counts for the one
    that called it.
    """
    jvm = session.sparkContext._jvm
    if jvm is None:
        raise RuntimeError("Cannot profile the JVM: the Spark session has ended.")
    recording = jvm.jdk.jfr.Recording(jvm.jdk.jfr.Configuration.getConfiguration("profile"))
    recording.start()
    samples: Counter[str] = Counter()
    try:
        yield samples
        recording.stop()
        file = jvm.java.nio.file.Path.of(jvm.java.net.URI(path.as_uri()))
        recording.dump(file)
    finally:
        recording.close()
    for event in jvm.jdk.jfr.consumer.RecordingFile.readAllEvents(file):
        if event.getEventType().getName() == "jdk.ExecutionSample":
            samples[_method(event)] += 1


def _method(event: JavaObject) -> str:
    name = ""
    for frame in event.getStackTrace().getFrames():
        method = frame.getMethod()
        name = f"{method.getType().getName()}.{method.getName()}"
        if not name.startswith(JDK):
            break
    return name


@contextmanager
def python_samples(path: Path) -> Iterator[Counter[str]]:
    """Sample the Python functions of this process and its workers with py-spy, which writes to `path`.

    The counter is filled at the end: samples by function, in which its own code ran and not one that it called. Raises
    RuntimeError if py-spy cannot read this process.
    """
    command = [
        str(BIN / "py-spy"), "record", "--pid", str(os.getpid()), "--subprocesses", "--format", "raw", "--function",
        "--rate", str(SAMPLES_A_SECOND), "--output", str(path), "--nonblocking",
    ]  # fmt: skip
    profiler = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    samples: Counter[str] = Counter()
    try:
        # Its first line reports that it samples, or why it cannot.
        first = profiler.stdout.readline() if profiler.stdout else ""
        if "Sampling" not in first:
            raise RuntimeError(
                f"Cannot profile Python: py-spy reported '{first.strip()}'. It needs the right to ptrace."
            )
        yield samples
    finally:
        profiler.send_signal(signal.SIGINT)
        output, _ = profiler.communicate(timeout=STOP_SECONDS)
    if profiler.returncode or not path.exists():
        raise RuntimeError(f"Cannot profile Python: py-spy ended with {profiler.returncode}: {output}")
    for line in path.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        _, callers, function = stack.rpartition(";")
        if callers:  # else only the process, which runs no Python function
            samples[function] += int(count)
