"""The transforms of one table, independent of the component that applies them.

A source connector applies them by its settings (cdc_lake/pipeline/connector_transforms.py), a poll by SQL
(cdc_lake/jobs/poll/record_sql.py). Verify computes the expected values (cdc_lake/jobs/verify/source_values.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict

Algorithm = Literal["SHA-256", "SHA-384", "SHA-512"]
"""The hash algorithms, by the names of Java's MessageDigest, which Debezium uses."""


class Masking(BaseModel):
    """How the values of a column are hidden: by a salted hash (`algorithm`), or by a fixed number of `asterisks`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    algorithm: Algorithm | None = None
    asterisks: int = 0

    @property
    def constant(self) -> str | None:
        """The text that replaces every value, as Debezium does, including NULL; None for a hash."""
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

    The hash is the digest of the salt and the value, both in UTF-8, as hexadecimal digits. It is cut to `length`, the
    column's maximum length.
    """
    if value is None:
        return None
    digest = hashlib.new(algorithm.replace("-", "").lower(), salt.encode() + value.encode()).hexdigest()
    return digest[:length]
