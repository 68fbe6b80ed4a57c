"""Kills processes by a plan and restarts them, while the pipeline runs by its sensors."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import psutil

from cdc_lake_tests.faults.kills.dagster_dev import DagsterDev
from cdc_lake_tests.faults.kills.kill_plan import COMPONENTS, DAEMON, RUN, SERVER, SPARK, Kill
from cdc_lake_tests.helpers.command_line import CommandLine

_START_SECONDS = 8.0
"""How long a kill of one of Dagster's or Spark's processes waits for one to start."""
_POLL_SECONDS = 1.0
_REPAIR_SECONDS = 300.0
_MAX_FAILURES = 6
"""Repair is given up after this many failures of `cdc-lake up` in a row; a kill during `up` may make it fail."""


class ProcessKiller:
    """Kills processes of one stack and repairs it in a thread; `log` receives a line for each event."""

    def __init__(self, cli: CommandLine, dagster: DagsterDev, log: Callable[[str], None]) -> None:
        self._cli, self._dagster, self._log = cli, dagster, log
        self.kills: Counter[str] = Counter()
        self.repairs: list[float] = []
        """The seconds of each repair."""
        self.faults: list[str] = []
        self._stopped = threading.Event()
        self._change = threading.Condition()
        self._requests, self._repaired = 0, 0
        self._repairer = threading.Thread(target=self._repair_all, name="repairer", daemon=True)

    def __enter__(self) -> ProcessKiller:
        self._repairer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        with self._change:
            self._change.notify_all()
        self._repairer.join()

    def kill(self, planned: Kill) -> None:
        """Wait for the kill's time, then kill the targets that run."""
        self._stopped.wait(planned.after)
        damaged = False
        for target in planned.targets:
            process = self._find(target, planned.into)
            if process is None:
                self._log(f"{target}: not running")
                continue
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
                self.kills[target] += 1
                self._log(f"{target}: killed, pid {process.pid}")
                damaged = damaged or target in COMPONENTS
        if damaged:
            self._request_repair()

    def wait_repaired(self) -> None:
        """Wait until everything runs. Raises AssertionError if the stack cannot be repaired."""
        requests = self._request_repair()
        with self._change:
            self._change.wait_for(lambda: self._repaired >= requests or bool(self.faults), _REPAIR_SECONDS)
        assert not self.faults, self.faults
        assert self._repaired >= requests, f"the stack was not repaired within {_REPAIR_SECONDS:.0f} s"

    def _request_repair(self) -> int:
        with self._change:
            self._requests += 1
            self._change.notify_all()
            return self._requests

    def _find(self, target: str, into: float) -> psutil.Process | None:
        if target in COMPONENTS:
            pid = {each.name: each.pid for each in self._cli.stack.status()}[target]
            return None if pid is None else psutil.Process(pid)
        dagster = self._dagster
        find = {DAEMON: dagster.daemons, RUN: dagster.runs, SERVER: dagster.servers, SPARK: dagster.sparks}[target]
        deadline = time.monotonic() + _START_SECONDS
        waited = False
        while time.monotonic() < deadline:
            found = find()
            if found:
                if waited:
                    self._stopped.wait(into)
                return found[-1]
            waited = True
            self._stopped.wait(0.5)
        return None

    def _repair_all(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            self._dagster.ensure()
            with self._change:
                self._change.wait_for(lambda: self._requests > self._repaired or self._stopped.is_set(), _POLL_SECONDS)
                requests = self._requests
            if requests == self._repaired or self._stopped.is_set():
                continue
            began = time.monotonic()
            done = self._cli.run("cdc-lake", "up", ok=False)
            failures = 0 if done.returncode == 0 else failures + 1
            if failures:
                self._log(f"`cdc-lake up` failed: {done.stderr.strip().splitlines()[-1:]}")
            else:
                self.repairs.append(time.monotonic() - began)
                self._log(f"up after {self.repairs[-1]:.1f} s")
            with self._change:
                if not failures:
                    self._repaired = requests
                elif failures == _MAX_FAILURES:
                    self.faults.append(f"`cdc-lake up` failed {failures} times in a row:\n{done.stdout}\n{done.stderr}")
                self._change.notify_all()
            if self.faults:
                return
