"""Call a Python function right before Hudi completes a commit."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, ClassVar

from pyspark.java_gateway import ensure_callback_server_started

_CALLBACK_SERVER = Lock()
"""Serializes the start of py4j's callback server: two tables that write for the first time at once would start two."""


def start_callback_server(gateway: Any) -> None:  # noqa: ANN401 - py4j has no types
    """Start py4j's callback server, through which Java calls Python functions, if it does not run."""
    with _CALLBACK_SERVER:
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]


class CommitHook:
    """A Java BiConsumer that calls a Python function; it stores and raises the exception, so that the commit fails."""

    class Java:
        """The interfaces for py4j."""

        implements: ClassVar[list[str]] = ["java.util.function.BiConsumer"]

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self.raised: Exception | None = None

    def accept(self, _table: object, _commit: object) -> None:
        """Call the hook; Hudi passes the table's client and the commit's metadata."""
        try:
            self._function()
        except Exception as error:
            self.raised = error
            raise
