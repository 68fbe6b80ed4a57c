"""What the transforms of a pipeline do to one table, as values that do not depend on who carries them out.

A source connector gets settings for them (cdc_lake/pipeline/connector_transforms.py), and verify gets SQL and a hash
function for the expected values (cdc_lake/jobs/verify/source_values.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict

Algorithm = Literal["SHA-256", "SHA-384", "SHA-512"]
"""The names of Java's MessageDigest, which Debezium uses."""


class Masking(BaseModel):
    """How the values of a column are hidden: by a salted hash (`algorithm`), or by `asterisks` for every value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    algorithm: Algorithm | None = None
    asterisks: int = 0

    @property
    def constant(self) -> str | None:
        """The text that replaces every value, also NULL, as Debezium does; None for a hash."""
        return "*" * self.asterisks if self.algorithm is None else None


@dataclass(frozen=True)
class TableTransforms:
    """The transforms of one table.

    `masked` and `renamed` are keyed by the column's name at the source; `inserted` are constant values by the name of
    the new column.
    """

    masked: Mapping[str, Masking] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    inserted: Mapping[str, str] = field(default_factory=dict)


def hashed(value: str | None, salt: str, algorithm: Algorithm, length: int | None = None) -> str | None:
    """Return the hash of a value, as Debezium's `column.mask.hash.v2` does; NULL stays NULL.

    It is the digest of the salt's bytes followed by the value's, both in UTF-8, in hexadecimal digits, cut to `length`,
    the column's maximum length.
    """
    if value is None:
        return None
    digest = hashlib.new(algorithm.replace("-", "").lower(), salt.encode() + value.encode()).hexdigest()
    return digest[:length]
