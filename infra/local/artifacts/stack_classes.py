"""Creates the class archives of the stack's engines by running each engine once, on a scratch stack.

The JVMs write the archives when they end.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType

from infra.local.artifacts.artifacts import SetupProgress
from infra.local.artifacts.cache import cache_folder
from infra.local.artifacts.class_path import NAME, ClassPath, keep, recording
from infra.local.components import all_components
from infra.local.errors import StackError
from infra.local.stack.component import Component, Launch, OnJava, StackContext
from infra.local.stack.process import end, find
from infra.local.stack.stack import Stack
from infra.local.stack.start_order import dependents
from infra.local.stack.state_folder import StackHome

_END_SECONDS = 300.0
"""The JVM needs some seconds for each hundred megabytes of classes."""


def ensure(progress: SetupProgress) -> str:
    """Create the missing archives. Returns a warning if that fails, else an empty string.

    Raises ArtifactsMissing if the jars are not in the cache.
    """
    engines = [component for component in all_components() if isinstance(component, OnJava)]
    return keep([engine.class_path() for engine in engines], train, "the stack", progress)


def train(drafts: Mapping[ClassPath, Path]) -> None:
    """Start the engines, send each some requests, and stop them one after the other, clients before servers.

    The stack is in the cache folder. A killed setup leaves it there, and the next one deletes it. Raises StackError if
    an engine does not start or does not end.
    """
    components = _recorded(drafts)
    # Ports that the user has fixed in the environment belong to the stack in use, so they are ignored.
    stack = Stack(StackHome(scratch()), components, environment={})
    _clear(stack, drafts)
    with _ended_in_order():
        try:
            stack.up([each.name for each in components if isinstance(each, Recorded)])
            _end(stack, components)
        except StackError as error:
            logs = cache_folder() / "logs" / "setup-stack-classes"
            shutil.copytree(stack.home.path / "logs", logs, dirs_exist_ok=True)
            raise StackError(str(error).replace(str(stack.home.path / "logs"), str(logs))) from error
        finally:
            _clear(stack)


def scratch() -> Path:
    """Return the state folder of the scratch stack."""
    return cache_folder() / NAME / "stack"


def _end(stack: Stack, components: Sequence[Component]) -> None:
    left = {component.name for component in components if isinstance(component, Recorded)}
    while left:
        name = next(name for name in sorted(left) if not dependents(components, [name]) & left)
        began = time.monotonic()
        end([each.process for each in find(stack.home.path, name) if each.main], signal.SIGTERM, _END_SECONDS)
        if time.monotonic() - began >= _END_SECONDS:  # then it was killed, perhaps while it wrote the archive
            raise StackError(f"{name} did not end within {_END_SECONDS:.0f} s")
        left.remove(name)


def _clear(stack: Stack, drafts: Mapping[ClassPath, Path] | None = None) -> None:
    """Stop the scratch stack's processes, then delete its folder and the drafts."""
    stack.down()
    if stack.home.path.exists():
        shutil.rmtree(stack.home.path)
    for draft in (drafts or {}).values():
        draft.unlink(missing_ok=True)


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Stop the engines when setup receives SIGTERM or SIGHUP, as on Ctrl-C."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if current_thread() is not main_thread():  # signal handlers can only be set in the main thread
        yield
        return
    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _recorded(drafts: Mapping[ClassPath, Path]) -> list[Component]:
    """Return all components, because each configuration has the addresses of others; those with a draft are
    recorded."""
    components = all_components()
    engines = [each.name for each in components if isinstance(each, OnJava)]
    return [
        Recorded(each, drafts[each.class_path()], engines)
        if isinstance(each, OnJava) and each.class_path() in drafts
        else each
        for each in components
    ]


class Recorded:
    """An engine that writes its loaded classes to `draft` when it ends. Of its needs, only `engines` are started."""

    def __init__(self, engine: OnJava, draft: Path, engines: Collection[str]) -> None:
        self._engine = engine
        self._draft = draft
        self.name = engine.name
        self.port_names = engine.port_names
        self.needs = tuple(name for name in engine.needs if name in engines)

    def version(self) -> str:
        """Return the engine's version."""
        return self._engine.version()

    def prepare(self, context: StackContext) -> None:
        """Prepare the engine."""
        self._engine.prepare(context)

    def launch(self, context: StackContext) -> Launch:
        """Return the engine's process with the option that writes the archive."""
        launch = self._engine.launch(context)
        java, *arguments = launch.argv
        used = self._engine.class_path().options()  # a JVM cannot write one archive while it uses another
        kept = (each for each in arguments if each not in used)
        return replace(launch, argv=(java, recording(self._draft), *kept))

    def probe(self, context: StackContext) -> None:
        """Probe the engine."""
        self._engine.probe(context)

    def after_ready(self, context: StackContext) -> None:
        """Do what the engine does after its start, then send it the usual requests."""
        try:
            self._engine.after_ready(context)
            self._engine.exercise(context)
        except Exception as error:
            raise StackError(f"{self.name} was asked for something and answered {error!r}") from error
