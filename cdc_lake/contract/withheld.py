"""What a spec holds and must never be written down: metadata of dataclass fields.

A spec travels to another machine as an object that more people can read than may read its secrets. Here: how a field
says that it is one, and who has it there. Not here: writing and reading specs (jobs/wire.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

KEY = "cdc_lake.withheld"
ROLE = "role"
PLAIN = "plain"

OF_THE_ROLE: Mapping[str, str] = MappingProxyType({KEY: ROLE})
"""Left out: the reader has credentials of its own, from its role or its environment."""
WITHOUT_SECRETS: Mapping[str, str] = MappingProxyType({KEY: PLAIN})
"""A mapping of settings that is written, and is refused where one is named as passwords are."""


def kept_as(name: str) -> Mapping[str, str]:
    """A secret that is written as a reference to where it is kept; `name` is what it is called among secrets."""
    return MappingProxyType({KEY: name})


SOURCE_PASSWORD = "source-password"  # noqa: S105 - a name
