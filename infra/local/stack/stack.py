"""The local stack of one state folder: up, down, status."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from threading import Event
from time import monotonic

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from infra.errors import PortLost
from infra.folders import cache_folder
from infra.local.components import OPTIONAL, all_components
from infra.local.progress import SilentProgress, StackProgress
from infra.local.stack.component import Component, StackContext
from infra.local.stack.component_status import ComponentStatus, component_status
from infra.local.stack.ports import PortBook
from infra.local.stack.process import find, recorded
from infra.local.stack.stack_secrets import load_or_make
from infra.local.stack.stack_state import StateFile
from infra.local.stack.start_order import dependents, run_in_order, start_dependencies, started_after, with_dependencies
from infra.local.stack.starter import Starter
from infra.local.stack.state_folder import StackHome, find_home


class Stack:
    """The components of one state folder; safe to use from several processes at once.

    `environment` fixes ports (ports.py); the process's environment if None.
    """

    def __init__(
        self,
        home: StackHome | None = None,
        components: Sequence[Component] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.environment = environment
        self.home = home or find_home()
        self.components = tuple(components) if components is not None else all_components()
        self.state = StateFile(self.home.state_file)

    def up(self, only: Collection[str] | None = None, progress: StackProgress | None = None) -> list[ComponentStatus]:
        """Start the components that do not run, and return the status of all.

        `only` names the components to start; the components that they need start too. None: all components except
        optional ones (`infra.local.components.OPTIONAL`) that were not started since the last `down`.

        Raises StackError if another process has a port, artifacts are missing, or a component does not start.
        """
        progress = progress or SilentProgress()
        self.home.make()
        with self.home.locked(), _log_to_progress(progress):
            chosen = with_dependencies(self.components, [c.name for c in self._used()] if only is None else only)
            # Another program may take a port after it is chosen and before it is used; then ports are chosen again. A
            # stack of another user that starts at the same time can take one after the other.
            choices = 1 + sum(len(component.port_names) for component in chosen)
            Retrying(retry=retry_if_exception_type(PortLost), stop=stop_after_attempt(choices), reraise=True)(
                self._start, chosen, progress
            )
        return self.status()

    def _start(self, chosen: Sequence[Component], progress: StackProgress) -> None:
        cancelled = Event()
        starter = Starter(self.home, self.state, progress, cancelled)
        context = self._context(starter)
        by_name = {component.name: component for component in chosen}
        run_in_order(
            {component.name: start_dependencies(component) for component in chosen},
            lambda name: starter.start(by_name[name], context),
            cancelled,
        )

    def _context(self, starter: Starter) -> StackContext:
        """Return the context with the ports of all components, also of those that are not started now.

        Ends processes without a record, and components that use an address that has changed.
        """
        saved = self.state.read()
        alive = {c.name for c in self.components if recorded(saved.processes.get(c.name)) is not None}
        # The ports of a process without a record are unknown, so it is ended before ports are chosen.
        for name in {f.component for f in find(self.home.path)} - alive:
            starter.end(name, self._component(name), find(self.home.path, name))
        ours = {port for c in self.components if c.name in alive for port in c.port_names}
        wanted = [port for component in self.components for port in component.port_names]
        book = PortBook(cache_folder(), self.environment)
        ports = book.choose(self.home.path, wanted, saved.ports, ours, starter.progress.say, self.state.save_ports)
        moved = {c.name for c in self.components if any(ports[p] != saved.ports.get(p) for p in c.port_names)}
        for name in alive & (moved | dependents(self.components, moved)):
            starter.progress.doing(name, "stopping: an address that it uses has changed")
            starter.end(name, self._component(name), find(self.home.path, name))
        return StackContext(self.home.path, ports, load_or_make(self.home.secrets_file))

    def down(self, progress: StackProgress | None = None) -> None:
        """End every process of this stack, dependents first; return when all have ended."""
        progress = progress or SilentProgress()
        if not self.home.path.is_dir() and not find(self.home.path):
            return
        self.home.make()  # a user may have deleted the folder of running processes
        with self.home.locked():
            starter = Starter(self.home, self.state, progress, Event())
            running = {f.component for f in find(self.home.path)}
            recorded_names = set(self.state.read().processes)
            waits = {
                name: started_after(self.components, [name]) & running for name in sorted(running | recorded_names)
            }
            run_in_order(waits, lambda name: self._stop(name, starter), Event())

    def _stop(self, name: str, starter: Starter) -> None:
        began = monotonic()
        found = find(self.home.path, name)
        starter.progress.doing(name, "stopping")
        starter.end(name, self._component(name), found)
        starter.progress.done(name, "stopped" if found else "was not running", monotonic() - began)

    def _component(self, name: str) -> Component | None:
        return next((component for component in self.components if component.name == name), None)

    def status(self) -> list[ComponentStatus]:
        """Return the status of each component, in the order of `components`; without optional ones that are stopped."""
        state = self.state.read()
        return [component_status(component, state) for component in self._used()]

    def _used(self) -> list[Component]:
        """Return the components without the optional ones that were not started since the last `down`."""
        started = self.state.read().processes
        return [c for c in self.components if c.name not in OPTIONAL or c.name in started]


class _log_to_progress(logging.Handler):  # noqa: N801 - used as a context manager
    """Shows the log records of components as messages while `up` runs."""

    def __init__(self, progress: StackProgress) -> None:
        super().__init__(logging.INFO)
        self._progress = progress
        self._logger = logging.getLogger("infra.local")

    def emit(self, record: logging.LogRecord) -> None:
        self._progress.say(record.getMessage())

    def __enter__(self) -> None:
        self._logger.addHandler(self)
        self._logger.setLevel(logging.INFO)

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
