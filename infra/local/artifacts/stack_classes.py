"""The classes that the stack's engines load: kept by running each of them once, on a scratch stack.

Their JVMs write the archives while they end.
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
"""Writing takes some seconds for each hundred megabytes of classes."""


def ensure(progress: SetupProgress) -> str:
    """Make the archives that are missing; returns what is to be said where that fails.

    Raises ArtifactsMissing before the jars are there.
    """
    engines = [component for component in all_components() if isinstance(component, OnJava)]
    return keep([engine.class_path() for engine in engines], train, "the stack", progress)


def train(drafts: Mapping[ClassPath, Path]) -> None:
    """Start the engines, ask each of them for something, and end them one after the other, users first.

    The stack lies in the cache folder: a setup that was killed leaves it there, and the next one clears it away.
    Raises StackError where an engine does not come up, or does not end.
    """
    components = _recorded(drafts)
    # Without the ports that somebody has fixed: those are for a stack that is used.
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
    """Where the stack lies while it runs."""
    return cache_folder() / NAME / "stack"


def _end(stack: Stack, components: Sequence[Component]) -> None:
    left = {component.name for component in components if isinstance(component, Recorded)}
    while left:
        name = next(name for name in sorted(left) if not dependents(components, [name]) & left)
        began = time.monotonic()
        end([each.process for each in find(stack.home.path, name) if each.main], signal.SIGTERM, _END_SECONDS)
        if time.monotonic() - began >= _END_SECONDS:  # killed then, perhaps in the middle of writing
            raise StackError(f"{name} did not end within {_END_SECONDS:.0f} s")
        left.remove(name)


def _clear(stack: Stack, drafts: Mapping[ClassPath, Path] | None = None) -> None:
    """End what runs there and remove it, with what it wrote while it ended."""
    stack.down()
    if stack.home.path.exists():
        shutil.rmtree(stack.home.path)
    for draft in (drafts or {}).values():
        draft.unlink(missing_ok=True)


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Where setup is told to end, it ends what it has started, as it does on Ctrl-C."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if current_thread() is not main_thread():  # only that one hears signals
        yield
        return
    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _recorded(drafts: Mapping[ClassPath, Path]) -> list[Component]:
    """All components, for each has addresses of others in its configuration; those with a draft are recorded."""
    components = all_components()
    engines = [each.name for each in components if isinstance(each, OnJava)]
    return [
        Recorded(each, drafts[each.class_path()], engines)
        if isinstance(each, OnJava) and each.class_path() in drafts
        else each
        for each in components
    ]


class Recorded:
    """An engine that writes what it loads to `draft` as it ends; of what it needs only `engines` are started."""

    def __init__(self, engine: OnJava, draft: Path, engines: Collection[str]) -> None:
        self._engine = engine
        self._draft = draft
        self.name = engine.name
        self.port_names = engine.port_names
        self.needs = tuple(name for name in engine.needs if name in engines)

    def version(self) -> str:
        """The engine's."""
        return self._engine.version()

    def prepare(self, context: StackContext) -> None:
        """As the engine does."""
        self._engine.prepare(context)

    def launch(self, context: StackContext) -> Launch:
        """The engine's process, told to write."""
        launch = self._engine.launch(context)
        java, *arguments = launch.argv
        used = self._engine.class_path().options()  # one archive can't be written while another one is used
        kept = (each for each in arguments if each not in used)
        return replace(launch, argv=(java, recording(self._draft), *kept))

    def probe(self, context: StackContext) -> None:
        """As the engine does."""
        self._engine.probe(context)

    def after_ready(self, context: StackContext) -> None:
        """What the engine does, and what it is asked for most."""
        try:
            self._engine.after_ready(context)
            self._engine.exercise(context)
        except Exception as error:
            raise StackError(f"{self.name} was asked for something and answered {error!r}") from error
