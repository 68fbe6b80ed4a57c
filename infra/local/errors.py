"""The errors of the embedded stack: each says what happened, to what, and what to do next."""

from __future__ import annotations


class StackError(Exception):
    """Anything that keeps the embedded stack from doing what was asked, in the user's words."""

    @property
    def user_message(self) -> str:
        """The sentence to show to the user."""
        return str(self)


class StackDown(StackError):  # noqa: N818 - it names a state, as users know it
    """What was asked needs the stack, or a part of it, and that is not running."""


class ArtifactsMissing(StackError):  # noqa: N818 - it names a state, as users know it
    """A jar, plugin or Java that the stack runs is not in the cache folder."""


class PortTaken(StackError):  # noqa: N818 - it names a state, as users know it
    """A port that was asked for by name is held by another process."""


class StartFailed(StackError):  # noqa: N818 - it names a state, as users know it
    """A component's process ended, or did not answer in time, while it was starting."""


class PortLost(StartFailed):
    """A component's process ended because another program took the port between its choice and its use."""
