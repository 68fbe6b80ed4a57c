"""The address of the source's database, with the credentials of a job's executors."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_lake.contract.secret_fields import HashSalt, SourcePassword


@dataclass(frozen=True)
class SourceAccess:
    """The address and credentials with which executors connect to the source.

    It is sent to the executors in a pickled function, so that it is not in plans or logs; its repr omits password and
    salt.
    """

    host: str
    port: int
    database: str
    user: str
    password: SourcePassword = field(repr=False)
    hash_salt: HashSalt = field(default="", repr=False)
    """The salt of hashed columns; empty for a table without one."""
    connect_timeout_seconds: int = 10
