"""What loading a sample can end with, besides success."""

from __future__ import annotations


class LoadError(Exception):
    """The sample could not be loaded, removed or changed, and the database is as it was before."""

    def __init__(self, user_message: str) -> None:
        super().__init__(user_message)
        self.user_message = user_message
        """What happened, to which object, and what to do next; for the user, without a traceback."""
