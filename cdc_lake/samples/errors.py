"""The errors that loading, removing or changing a sample raises."""

from __future__ import annotations


class LoadError(Exception):
    """The sample could not be loaded, removed or changed; the database is unchanged."""

    def __init__(self, user_message: str) -> None:
        super().__init__(user_message)
        self.user_message = user_message
        """The message for the user: what failed, with the object's name, and what to do next."""


class ConnectError(LoadError):
    """The server cannot be reached, rejects the user, or does not have the database."""
