"""What the stack tells about its work while it is at it; who shows it is no concern of the stack's."""

from __future__ import annotations

from typing import Protocol


class Watch(Protocol):
    """Listens to `up` and `down`; called from several threads."""

    def doing(self, component: str, what: str) -> None:
        """The component is at this step now."""

    def done(self, component: str, result: str, seconds: float) -> None:
        """The component is through, after so many seconds."""

    def say(self, message: str) -> None:
        """Something that the user should know."""


class Silent:
    """Listens and shows nothing."""

    def doing(self, component: str, what: str) -> None:
        """Show nothing."""

    def done(self, component: str, result: str, seconds: float) -> None:
        """Show nothing."""

    def say(self, message: str) -> None:
        """Show nothing."""
