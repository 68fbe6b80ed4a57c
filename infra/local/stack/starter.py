"""Starts a component and waits until it serves requests; ends a component."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from time import monotonic

import psutil
from tenacity import RetryError, Retrying, retry_if_not_exception_type, stop_after_delay, wait_fixed

from infra.errors import PortLost, StackError, StartFailed
from infra.local.progress import StackProgress
from infra.local.stack.component import Component, StackContext, StopsBySignal
from infra.local.stack.ports import is_free, listener
from infra.local.stack.process import Found, end, find, is_alive, is_ending, listening, record, recorded, spawn
from infra.local.stack.stack_state import StateFile
from infra.local.stack.state_folder import StackHome

START_VARIABLE = "CDC_LAKE_START_SECONDS"
START_SECONDS = 180.0
STOP_SECONDS = 30.0
TAIL_LINES = 25


@dataclass(frozen=True)
class Starter:
    """Starts and ends the components of one stack."""

    home: StackHome
    state: StateFile
    progress: StackProgress
    cancelled: Event

    def start(self, component: Component, context: StackContext) -> None:
        """Start the component; return when it serves requests and `after_ready` is finished.

        Raises StartFailed with the end of its log if its process ends or does not answer in time; PortLost if another
        process has taken its port in the meantime.
        """
        began = monotonic()
        process = recorded(self.state.read().processes.get(component.name))
        result = "was running" if process and self._still_serves(component, context, process) else "running"
        if result == "running":
            self._restart(component, context)
        component.after_ready(context)
        port = context.ports[component.port_names[0]]
        self.progress.done(component.name, f"{result} on port {port}", monotonic() - began)

    def _still_serves(self, component: Component, context: StackContext, process: psutil.Process) -> bool:
        """Return whether a process that was started earlier answers; False if it ends in the meantime."""
        self.progress.doing(component.name, "checking that it answers")
        try:
            self._wait(component, context, process, log_from=0)
        except PortLost:
            raise
        except StartFailed:
            if is_alive(process):
                raise
            return False  # it was ending when it was found
        return True

    def _restart(self, component: Component, context: StackContext) -> None:
        self.end(component.name, component, find(self.home.path, component.name))
        self.progress.doing(component.name, "preparing")
        component.prepare(context)
        self.progress.doing(component.name, "starting")
        log = self.home.log(component.name)
        log_from = log.stat().st_size if log.exists() else 0
        process = spawn(component.launch(context), component.name, self.home.path, log)
        self.state.save_process(component.name, record(process))
        self.progress.doing(component.name, "waiting for it to answer")
        try:
            self._wait(component, context, process, log_from)
        except StartFailed:
            if not is_alive(process):
                self.state.forget_process(component.name)
            raise

    def _wait(self, component: Component, context: StackContext, process: psutil.Process, log_from: int) -> None:
        seconds = _start_seconds()
        ports = [context.ports[name] for name in component.port_names]

        def probe() -> None:
            if self.cancelled.is_set():
                raise StartFailed(f"Cannot start {component.name}: the start of the stack was cancelled.")
            # Check the ports first: the process may have ended because of a lost port, which may soon be free again.
            if (lost := _lost_port(process, ports)) is not None:
                holder = listener(lost)
                self.end(component.name, component, find(self.home.path, component.name))
                raise PortLost(
                    f"Cannot start {component.name}: {holder} has taken port {lost} since it was chosen. "
                    "Run `cdc-lake up` again."
                )
            if not is_alive(process):
                raise StartFailed(
                    f"Cannot start {component.name}: it ended while it was "
                    f"starting{self._tail(component.name, log_from)}"
                )
            component.probe(context)
            if missing := set(ports) - listening(process):
                raise ConnectionRefusedError(f"{component.name} does not listen on {', '.join(map(str, missing))}")

        try:
            Retrying(
                stop=stop_after_delay(seconds),
                wait=wait_fixed(0.1),
                retry=retry_if_not_exception_type((StartFailed, KeyboardInterrupt)),
            )(probe)
        except RetryError as error:
            cause = error.last_attempt.exception()
            why = str(cause) or type(cause).__name__
            self.end(component.name, component, find(self.home.path, component.name))
            raise StartFailed(
                f"Cannot start {component.name}: it did not answer within {seconds:.0f} s ({why}), so it was "
                f"ended. {START_VARIABLE} sets another limit{self._tail(component.name, log_from)}"
            ) from cause

    def _tail(self, component: str, offset: int) -> str:
        """Return a sentence with the last lines of the component's log after `offset`."""
        log = self.home.log(component)
        with log.open("rb") as file:
            file.seek(offset if offset <= log.stat().st_size else 0)  # the log may have been rotated
            lines = file.read().decode("utf-8", errors="replace").strip().splitlines()[-TAIL_LINES:]
        return f". The end of {log}:\n" + "\n".join(lines or ["(it is empty)"])

    def end(self, name: str, component: Component | None, found: list[Found]) -> None:
        """End these processes of one component and delete its record; return when they have ended."""
        chosen = component.stop_signal if isinstance(component, StopsBySignal) else signal.SIGTERM
        main = [f.process for f in found if f.main]
        end(main, chosen, STOP_SECONDS)
        # The workers of a killed PostgreSQL end shortly after it. Its shared memory is released only when they have
        # ended.
        end([f.process for f in found if not f.main], signal.SIGTERM, STOP_SECONDS)
        self.state.forget_process(name)


def _lost_port(process: psutil.Process, ports: Sequence[int]) -> int | None:
    """Return one of the ports if a process other than `process` listens on it.

    A process that is ending can still hold its ports, but the kernel no longer shows them: they are not lost.
    """
    of_others = [port for port in ports if not is_free(port) and port not in listening(process)]
    # The process may have ended between the two checks.
    return next((port for port in of_others if not is_ending(process) and not is_free(port)), None)


def _start_seconds() -> float:
    text = os.environ.get(START_VARIABLE, "")
    try:
        return float(text) if text else START_SECONDS
    except ValueError:
        raise StackError(
            f"Cannot use {START_VARIABLE}={text}: it is not a number of seconds. Set a number such as 120."
        ) from None
