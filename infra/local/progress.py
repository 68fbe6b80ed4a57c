"""The interface through which the stack reports progress; progress_display.py shows it on the terminal."""

from __future__ import annotations

from typing import Protocol


class StackProgress(Protocol):
    """Receives the progress of `up` and `down`; called from several threads."""

    def doing(self, component: str, what: str) -> None:
        """The component has started this step."""

    def done(self, component: str, result: str, seconds: float) -> None:
        """The component is finished, after this many seconds."""

    def say(self, message: str) -> None:
        """Show a message to the user."""


class SilentProgress:
    """Ignores all progress."""

    def doing(self, component: str, what: str) -> None:
        """Show nothing."""

    def done(self, component: str, result: str, seconds: float) -> None:
        """Show nothing."""

    def say(self, message: str) -> None:
        """Show nothing."""
