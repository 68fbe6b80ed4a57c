"""The transforms of one table, independent of the component that applies them.

A source connector applies them by its settings (cdc_lake/pipeline/connector_transforms.py), a poll by SQL
(cdc_lake/jobs/poll/record_sql.py), and landing to records in JSON (record_text.py) or Avro
(cdc_lake/contract/source/avro_transforms.py). Verify computes the expected values
(cdc_lake/jobs/verify/source_values.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict

Algorithm = Literal["SHA-256", "SHA-384", "SHA-512"]
"""The hash algorithms, by the names of Java's MessageDigest, which Debezium uses."""
CastType = Literal["int32", "int64", "float64", "string"]
"""The types of Kafka Connect's Cast that keep every value."""
CASTS: Mapping[CastType, tuple[str, frozenset[str]]] = {
    "int32": ("integer", frozenset({"smallint"})),
    "int64": ("bigint", frozenset({"smallint", "integer"})),
    "float64": ("double precision", frozenset({"smallint", "integer"})),
    "string": ("text", frozenset({"smallint", "integer", "bigint", "boolean"})),
}
"""PostgreSQL's type with the same values, and the types that can be cast to it."""


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
class RecordKey:
    """The fields of a Kafka record's key; with `alone`, the key is the value of the one field and not an object."""

    fields: tuple[str, ...]
    alone: bool = False


@dataclass(frozen=True)
class TableTransforms:
    """The transforms of one table.

    `masked`, `renamed` and `cast` are keyed by the column's name at the source, or before landing; `inserted` are
    constant values by the name of the new column. `key` is None if the record's key is the table's.
    """

    masked: Mapping[str, Masking] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    inserted: Mapping[str, str] = field(default_factory=dict)
    cast: Mapping[str, CastType] = field(default_factory=dict)
    key: RecordKey | None = None

    @property
    def copies_records(self) -> bool:
        """Whether Kafka Connect copies the fields of records to apply them."""
        return bool(self.renamed or self.inserted or self.cast)


def hashed(value: str | None, salt: str, algorithm: Algorithm, length: int | None = None) -> str | None:
    """Return the hash of a value, as Debezium's `column.mask.hash.v2` does; NULL stays NULL.

    The hash is the digest of the salt and the value, both in UTF-8, as hexadecimal digits. It is cut to `length`, the
    column's maximum length.
    """
    if value is None:
        return None
    digest = hashlib.new(algorithm.replace("-", "").lower(), salt.encode() + value.encode()).hexdigest()
    return digest[:length]
