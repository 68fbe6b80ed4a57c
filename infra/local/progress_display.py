"""Shows the progress of the stack and of `setup` on the terminal: one line for each part, with its duration.

On a terminal the lines are updated; elsewhere (a CI log) each part prints one line when it is finished.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

NAME_WIDTH = 10


class ConsoleProgress:
    """Shows `up` and `down`; a context manager and a StackProgress."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = console.is_terminal
        self._tasks: dict[str, TaskID] = {}
        self._bars = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn(f"{{task.fields[component]:<{NAME_WIDTH}}}"),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
        )

    def __enter__(self) -> Self:
        if self._live:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._bars.stop()

    def doing(self, component: str, what: str) -> None:
        """Show the step on the component's line."""
        if self._live:
            self._bars.update(self._task(component), description=what)

    def done(self, component: str, result: str, seconds: float) -> None:
        """Finish the component's line."""
        if self._live:
            self._bars.update(self._task(component), description=result, completed=1)
        else:
            self._console.print(f"{component:<{NAME_WIDTH}} {result} ({seconds:.1f} s)", highlight=False)

    def say(self, message: str) -> None:
        """Print the message above the lines."""
        self._console.print(message, highlight=False, soft_wrap=True)

    def _task(self, component: str) -> TaskID:
        if component not in self._tasks:
            self._tasks[component] = self._bars.add_task("", total=1, component=component)
        return self._tasks[component]


class ConsoleSetup:
    """Shows the artifacts that are being fetched, with the size so far; a context manager and a SetupProgress."""

    def __init__(self, console: Console) -> None:
        self._progress = ConsoleProgress(console)
        self._ended: Event | None = None
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._progress.__exit__(kind, error, trace)

    def started(self, name: str, measure: Callable[[], int]) -> None:
        """Start a line with the size so far, measured twice a second."""
        ended = Event()

        def follow() -> None:
            while not ended.wait(0.5):
                self._progress.doing(name, f"downloading, {megabytes(measure())} so far")

        self._progress.doing(name, "downloading")
        self._ended, self._thread = ended, Thread(target=follow, daemon=True)
        self._thread.start()

    def finished(self, name: str, size: int, seconds: float) -> None:
        """Finish the line with size and time."""
        self._stop()
        self._progress.done(name, f"in the cache, {megabytes(size)}", seconds)

    def _stop(self) -> None:
        if self._ended is not None and self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._ended = self._thread = None


def megabytes(size: int | None) -> str:
    """Format the size in MB (10^6 bytes); a dash if it is unknown."""
    return "-" if size is None else f"{size / 1e6:,.0f} MB"
