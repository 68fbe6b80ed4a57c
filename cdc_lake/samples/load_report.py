"""The result of loading a sample."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LoadReport:
    """The result of a load."""

    tables: tuple[tuple[str, int], ...]
    """The name and number of rows of each table; Northwind's outbox is the last."""
    wal_level: str
    """The server's setting; changes can be captured only with `logical`."""
    seconds: float
    own_outbox: bool = False
    """Whether the scripts created an outbox, so that the sample's outbox was not added."""
    roles: tuple[str, ...] = ()
    """The roles that were created, without login, because the scripts grant rights to them or need an owner."""
