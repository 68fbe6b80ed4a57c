"""Killing what a plan says, and starting again what was killed, while the pipeline runs by its sensors."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import psutil

from cdc_lake_tests.e2e.conftest import CommandLine
from cdc_lake_tests.faults.dagster_dev import DagsterDev
from cdc_lake_tests.faults.kill_plan import COMPONENTS, DAEMON, RUN, SPARK, Blow

_PATIENCE_SECONDS = 15.0
"""How long a blow at a run waits for one to begin."""
_LOOK_SECONDS = 1.0
_MEND_SECONDS = 300.0
_REPAIRS = 6
"""So many `cdc-lake up` in a row may fail because something else was killed meanwhile."""


class Chaos:
    """Blows at one stack; `say` is told what happens. A repair is under way whenever something is down."""

    def __init__(self, cli: CommandLine, dagster: DagsterDev, say: Callable[[str], None]) -> None:
        self._cli, self._dagster, self._say = cli, dagster, say
        self.kills: Counter[str] = Counter()
        self.repairs: list[float] = []
        """Seconds that each took."""
        self.faults: list[str] = []
        self._over = threading.Event()
        self._change = threading.Condition()
        self._hurts, self._mended = 0, 0
        self._keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)

    def __enter__(self) -> Chaos:
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with self._change:
            self._change.notify_all()
        self._keeper.join()

    def strike(self, blow: Blow) -> None:
        """Wait until it is time, then kill the targets that are there."""
        self._over.wait(blow.after)
        hurt = False
        for target in blow.targets:
            process = self._find(target, blow.into)
            if process is None:
                self._say(f"{target}: not there")
                continue
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
                self.kills[target] += 1
                self._say(f"{target}: killed, pid {process.pid}")
                hurt = hurt or target in COMPONENTS
        if hurt:
            self._hurt()

    def mend(self) -> None:
        """Return when everything runs. Raises AssertionError where that can't be had."""
        hurts = self._hurt()
        with self._change:
            self._change.wait_for(lambda: self._mended >= hurts or bool(self.faults), _MEND_SECONDS)
        assert not self.faults, self.faults
        assert self._mended >= hurts, f"the stack was not up again within {_MEND_SECONDS:.0f} s"

    def _hurt(self) -> int:
        with self._change:
            self._hurts += 1
            self._change.notify_all()
            return self._hurts

    def _find(self, target: str, into: float) -> psutil.Process | None:
        if target in COMPONENTS:
            pid = {each.name: each.pid for each in self._cli.stack.status()}[target]
            return None if pid is None else psutil.Process(pid)
        if target == DAEMON:
            return self._dagster.daemon()
        look = {RUN: self._dagster.runs, SPARK: self._dagster.sparks}[target]
        deadline = time.monotonic() + _PATIENCE_SECONDS
        waited = False
        while time.monotonic() < deadline:
            found = look()
            if found:
                if waited:
                    self._over.wait(into)
                return found[-1]
            waited = True
            self._over.wait(0.5)
        return None

    def _keep(self) -> None:
        failures = 0
        while not self._over.is_set():
            self._dagster.ensure()
            with self._change:
                self._change.wait_for(lambda: self._hurts > self._mended or self._over.is_set(), _LOOK_SECONDS)
                hurts = self._hurts
            if hurts == self._mended or self._over.is_set():
                continue
            began = time.monotonic()
            done = self._cli.run("cdc-lake", "up", ok=False)
            failures = 0 if done.returncode == 0 else failures + 1
            if failures:
                self._say(f"`cdc-lake up` failed: {done.stderr.strip().splitlines()[-1:]}")
            else:
                self.repairs.append(time.monotonic() - began)
                self._say(f"up after {self.repairs[-1]:.1f} s")
            with self._change:
                if not failures:
                    self._mended = hurts
                elif failures == _REPAIRS:
                    self.faults.append(f"`cdc-lake up` failed {failures} times in a row:\n{done.stdout}\n{done.stderr}")
                self._change.notify_all()
            if self.faults:
                return
