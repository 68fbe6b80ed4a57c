"""The errors of the local stack. Each message contains the cause, the object and what to do next."""

from __future__ import annotations


class StackError(Exception):
    """The local stack cannot do what the user requested."""

    @property
    def user_message(self) -> str:
        """Return the message to show to the user."""
        return str(self)


class StackDown(StackError):  # noqa: N818 - the name is a state that users see
    """The request needs the stack or one of its components, which is not running."""


class ArtifactsMissing(StackError):  # noqa: N818 - the name is a state that users see
    """A jar, plugin or Java of the stack is not in the cache folder."""


class PortTaken(StackError):  # noqa: N818 - the name is a state that users see
    """Another process listens on a port that an environment variable sets, or no port in the searched range is free."""


class StartFailed(StackError):  # noqa: N818 - the name is a state that users see
    """A component's process ended, or did not answer in time, while it was starting."""


class PortLost(StartFailed):
    """Another process took a port of a component after the port was chosen and before the component listened."""
