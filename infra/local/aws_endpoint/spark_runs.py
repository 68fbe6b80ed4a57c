"""Runs of spark-submit: their ids, states, processes and logs; a file has them all.

Here: PENDING, RUNNING, then SUCCEEDED, FAILED or CANCELLED, with times and reasons. A run is a process of its own
session that ends with this one; of one that was under way, the next endpoint says that it FAILED.
Not here: the APIs' words for it (emr.py, emr_serverless.py), and the command (spark_submit.py).
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.local.aws_endpoint.spark_submit import CannotStartError, Wanted, place
from infra.local.files import write_atomic

log = logging.getLogger(__name__)

Prepare = Callable[[Wanted, Path], tuple[list[str], dict[str, str]]]
"""A request and a folder to the command and its environment. Raises CannotStartError."""

FINAL = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})
RESTARTED = "The local AWS endpoint was restarted while the run was under way, which ended with it."
_LOGS = ("stdout", "stderr")
_TAIL = 2000


@dataclass
class Run:
    """One run; times in seconds since the epoch."""

    id: str
    wanted: Wanted
    request: Mapping[str, Any]
    """What the API was asked for, to be told again."""
    logs: str
    """The folder in S3 that the logs are written to at its end; nothing where it is empty."""
    state: str = "PENDING"
    reason: str = ""
    exit_code: int | None = None
    created: float = field(default_factory=time.time)
    started: float | None = None
    ended: float | None = None

    @property
    def changed(self) -> float:
        """When it came into its state."""
        return self.ended or self.started or self.created


class SparkRuns:
    """The runs of one service, so many at once; later ones wait in their order."""

    def __init__(self, folder: Path, prepare: Prepare, s3: Any, at_once: int, grace_seconds: float = 10.0) -> None:  # noqa: ANN401
        self._folder, self._prepare, self._s3, self._grace = folder, prepare, s3, grace_seconds
        self._file = folder / "runs.json"
        self._lock = threading.RLock()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="spark-run")
        folder.mkdir(parents=True, exist_ok=True)
        self._runs = self._restored()
        self._save()

    def start(self, run: Run) -> Run:
        """Queue a run. When this returns, the file has it."""
        with self._lock:
            self._runs[run.id] = run
            self._save()
        self._threads.submit(self._guarded, run)
        return run

    def get(self, run_id: str) -> Run | None:
        """A run, None where there is none of that id."""
        with self._lock:
            return self._runs.get(run_id)

    def newest_first(self) -> list[Run]:
        """All runs."""
        with self._lock:
            return list(reversed(self._runs.values()))

    def cancel(self, run_id: str, number: signal.Signals = signal.SIGTERM) -> bool:
        """Ask for the end of a run by this signal; whether it had not ended yet."""
        with self._lock:
            run = self._runs[run_id]
            if run.state in FINAL:
                return False
            if run.state == "PENDING":
                self._end(run, "CANCELLED", "It was cancelled before it began.")
                return True
            run.state = "CANCELLING"
            self._save()
            process = self._processes.get(run_id)
        if process is not None:
            self._terminate(process, number)
        return True

    def close(self) -> None:
        """End all runs."""
        for run in self.newest_first():
            self.cancel(run.id)
        self._threads.shutdown()

    def folder(self, run_id: str) -> Path:
        """Where a run's files are: what was fetched for it, stdout and stderr."""
        return self._folder / run_id

    def _guarded(self, run: Run) -> None:
        try:
            self._run(run)
        except Exception:
            # Whatever it was, who polls must come to an end.
            log.exception("The run %s failed.", run.id)
            with self._lock:
                self._end(run, "FAILED", "INTERNAL_ERROR: see the log of the local AWS endpoint.")

    def _run(self, run: Run) -> None:
        with self._lock:
            if run.state != "PENDING":
                return
            run.state, run.started = "RUNNING", time.time()
            self._save()
        folder = self.folder(run.id)
        folder.mkdir(mode=0o700)
        try:
            command, environment = self._prepare(run.wanted, folder)
        except CannotStartError as error:
            (folder / "stdout").touch()
            (folder / "stderr").write_text(f"{error}\n")
            lost = self._publish(run, folder)
            with self._lock:
                self._end(run, "FAILED", f"{error}{lost}")
            return
        code = self._executed(run, command, environment, folder)
        lost = self._publish(run, folder)
        with self._lock:
            run.exit_code = code
            if run.state == "CANCELLING":
                self._end(run, "CANCELLED", "It was cancelled." + lost)
            elif code == 0:
                self._end(run, "SUCCEEDED", lost.strip())
            else:
                self._end(run, "FAILED", f"spark-submit ended with {code}: {_last_line(folder / 'stderr')}{lost}")

    def _executed(self, run: Run, command: list[str], environment: dict[str, str], folder: Path) -> int:
        guard = [sys.executable, "-I", str(Path(__file__).with_name("child.py"))]
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err, self._lock:
            if run.state != "RUNNING":
                return -signal.SIGTERM
            # The process's end of the pipe is all that keeps it: see child.py.
            process = subprocess.Popen(
                [*guard, *command],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            self._processes[run.id] = process
        try:
            return process.wait()
        finally:
            with self._lock:
                del self._processes[run.id]
            if process.stdin is not None:
                process.stdin.close()

    def _terminate(self, process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        """The signal to the group, and SIGKILL to what is left of it after the grace."""
        _signal(process, number)
        late = threading.Timer(self._grace, _signal, (process, signal.SIGKILL))
        late.daemon = True
        late.start()

    def _publish(self, run: Run, folder: Path) -> str:
        """Put the logs into S3; what went wrong with it."""
        if not run.logs:
            return ""
        bucket, prefix = place(run.logs)
        try:
            for name in _LOGS:
                body = gzip.compress((folder / name).read_bytes())
                self._s3.put_object(Bucket=bucket, Key=f"{prefix}{name}.gz", Body=body)
        except (ClientError, BotoCoreError) as error:
            log.warning("The logs of %s could not be written to %s: %s", run.id, run.logs, error)
            return f" Its logs could not be written to {run.logs}: {error}"
        return ""

    def _end(self, run: Run, state: str, reason: str) -> None:
        run.state, run.reason, run.ended = state, reason, time.time()
        self._save()

    def _save(self) -> None:
        write_atomic(self._file, json.dumps([asdict(run) for run in self._runs.values()], indent=1))

    def _restored(self) -> dict[str, Run]:
        known = json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else []
        runs = {each["id"]: Run(**{**each, "wanted": Wanted(**each["wanted"])}) for each in known}
        for run in runs.values():
            if run.state not in FINAL:
                run.state, run.reason, run.ended = "FAILED", RESTARTED, time.time()
        return runs


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """To the process's group, unless it has ended and been waited for: its number can be another's then."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def _last_line(path: Path) -> str:
    """What a log ends with, for a reason."""
    lines = [line.strip() for line in path.read_text(errors="replace")[-_TAIL:].splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
