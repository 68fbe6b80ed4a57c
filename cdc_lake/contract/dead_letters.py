"""Records that could not be read: kept whole, with where they came from and why.

Here: their form and place. Not here: deciding that a record is one (jobs/).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from cdc_lake.contract import names
from cdc_lake.contract.conditional import put_or_get
from cdc_lake.contract.store import ObjectStore


class DeadLetter(BaseModel):
    """One record: topic, partition, offset, raw object (where it got that far), reason, and its bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str
    partition: int
    offset: int
    object: str | None
    reason: str
    value: str | None
    """The record's value in base64; None for a record without one."""

    @classmethod
    def of(
        cls,
        topic: str,
        partition: int,
        offset: int,
        reason: str,
        value: bytes | None,
        raw_object: str | None = None,
    ) -> DeadLetter:
        """A dead letter from a record's raw bytes."""
        text = None if value is None else base64.b64encode(value).decode()
        return cls(topic=topic, partition=partition, offset=offset, object=raw_object, reason=reason, value=text)


def put(store: ObjectStore, pipeline: str, letters: Sequence[DeadLetter]) -> None:
    """Keep dead letters, one object each, named by topic, partition and offset.

    Putting the same record again changes nothing: a batch that is applied twice dead-letters once.
    """
    for letter in letters:
        key = (
            f"{names.dead_letter_prefix(pipeline)}{names.checked(letter.topic, 'topic')}/"
            f"{letter.topic}+{letter.partition}+{letter.offset:020d}.json"
        )
        put_or_get(store, key, letter.model_dump_json(indent=1).encode())


def keys(store: ObjectStore, pipeline: str) -> Iterator[str]:
    """The keys of all dead letters of a pipeline."""
    return (item.key for item in store.scan(names.dead_letter_prefix(pipeline)) if item.key.endswith(".json"))
