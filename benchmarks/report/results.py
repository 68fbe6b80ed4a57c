"""The result of one program as a JSON file: machine, versions, commit, figures, and which goals they meet."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict

from benchmarks.goals import GoalResult, evaluate
from benchmarks.report.figures import Figure
from infra.artifacts.artifacts import PEERS, pom_of
from infra.artifacts.jar_locks import locked

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "results"
PACKAGES = ("dagster", "pyspark", "pyarrow", "hudi")
JARS = ("hudi-spark", "iceberg-spark", "delta-spark", "kafka_2", "trino-server", "s3proxy")


class Machine(BaseModel):
    """The machine on which a program ran, and its load before the program."""

    model_config = ConfigDict(frozen=True)

    cores: int
    memory_gb: float
    processor: str
    system: str
    load: float


class Result(BaseModel):
    """One run of a program."""

    model_config = ConfigDict(frozen=True)

    program: str
    measured_at: datetime
    seconds: float
    arguments: Sequence[str]
    commit: str
    machine: Machine
    versions: dict[str, str]
    figures: tuple[Figure, ...]
    goals: tuple[GoalResult, ...]


class Recorder:
    """Writes the result of the program that created it, if its command line has `--results FOLDER`."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--results", type=Path, help="write the result as JSON into this folder")
        self._started = time.monotonic()
        self._load = os.getloadavg()[0]

    def write(self, options: argparse.Namespace, program: str, figures: Sequence[Figure]) -> Result:
        """Return the result with its goals evaluated; write it to `<program>.json` in the folder."""
        # Without options that are not given, and without paths of this machine.
        shown = {name: value for name, value in vars(options).items() if value not in (None, []) and name != "home"}
        shown = {name: value for name, value in shown.items() if not isinstance(value, Path)}
        result = Result(
            program=program,
            measured_at=datetime.now(UTC).replace(microsecond=0),
            seconds=round(time.monotonic() - self._started, 1),
            arguments=[f"{name}={value}" for name, value in shown.items()],
            commit=commit(),
            machine=machine(self._load),
            versions=versions(),
            figures=tuple(figures),
            goals=evaluate(program, figures, shown),
        )
        if options.results is not None:
            options.results.mkdir(parents=True, exist_ok=True)
            text = result.model_dump_json(indent=1) + "\n"
            (options.results / f"{program}.json").write_text(text, encoding="utf-8")
        return result


def read(folder: Path = FOLDER) -> list[Result]:
    """Return the results in a folder, by name."""
    return [Result.model_validate_json(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


def commit() -> str:
    """Return the commit of the working tree, with `+` after it if files differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", ".", ":!benchmarks/results")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def machine(load: float) -> Machine:
    """Return this machine, with a load average."""
    names = [line.partition(":")[2] for line in _cpuinfo() if line.startswith("model name")]
    return Machine(
        cores=os.cpu_count() or 0,
        memory_gb=round(psutil.virtual_memory().total / 2**30, 1),
        processor=names[0].strip() if names else platform.machine(),
        system=platform.platform(terse=True),
        load=round(load, 2),
    )


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def versions() -> dict[str, str]:
    """Return the versions of Python, of packages, and of jars by their file names."""
    found = {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
    for module in ("spark", "kafka", "s3proxy", "trino", PEERS):
        for name in locked(pom_of(module)):
            if name.startswith(JARS):
                found[module] = " ".join(filter(None, (found.get(module), name.removesuffix(".jar"))))
    return found
