"""Dead letters: records that cannot be landed or read, stored with their position and the reason.

A letter consists of the record's unchanged value, if it has one, which is put first, of the values with which users
replaced it, and of a small JSON object with all other fields, so that letters can be listed without reading values. A
letter is open until it is replayed, dropped, or overtaken by a newer snapshot; then it is moved with its value and its
last replacement to the prefix of closed letters, where they are kept. The first load of another table opens replayed
letters again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from cdc_lake.contract.errors import ContractError, ObjectConflictError, ObjectDamagedError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.conditional_put import put_or_get
from cdc_lake.contract.objects.store import ObjectStore, PreconditionFailedError

_ID = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)\+(?P<partition>\d+)\+(?P<offset>\d+)(@(?P<epoch>[1-9]\d*))?", re.ASCII)
_LETTER = ".json"
_VALUE = ".value"


Outcome = Literal["replayed", "overtaken", "dropped"]
"""Why a letter was closed: it was applied to the lake, superseded by a newer snapshot, or dropped by a user."""


class Closing(BaseModel):
    """How and when a letter was closed; `instant` is the Hudi commit that applied it, or None."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    how: Outcome
    at: datetime
    instant: str | None = None


class DeadLetter(BaseModel):
    """One record: its position, the reason why it cannot be landed or read, and a description of its value.

    `object` is the key of its raw object, None for a record that was never landed. `size` (bytes) and `sha256` describe
    the value; both are None for a record without a value. `key` and `headers` are Kafka's. Only landing stores them,
    because raw objects do not contain them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")

    topic: str
    partition: int
    offset: int
    epoch: int = 0
    object: str | None
    reason: str
    found_at: datetime
    size: int | None
    sha256: str | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    tries: int = 1
    """The number of failed attempts to read the record: the first one, and each failed replay."""
    tried_at: datetime | None = None
    replacement: str | None = Field(default=None, validation_alias=AliasChoices("replacement", "mended"))
    """The SHA-256 of the value that a user replaced the original with; letters of earlier versions call it `mended`."""
    closed: Closing | None = Field(default=None)

    @classmethod
    def of(
        cls,
        topic: str,
        partition: int,
        offset: int,
        reason: str,
        value: bytes | None,
        raw_object: str | None = None,
        epoch: int = 0,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> DeadLetter:
        """Return a dead letter for a record's raw bytes; `found_at` is the current time."""
        return cls(
            topic=topic,
            partition=partition,
            offset=offset,
            epoch=epoch,
            object=raw_object,
            reason=reason,
            found_at=datetime.now(UTC),
            size=None if value is None else len(value),
            sha256=None if value is None else _sha256(value),
            key=key,
            headers=tuple(headers),
        )

    @property
    def id(self) -> str:
        """The id on the command line: `<topic>+<partition>+<offset>`, and `@<epoch>` from epoch 1 on."""
        return f"{self.topic}+{self.partition}+{self.offset}{f'@{self.epoch}' if self.epoch else ''}"

    def name(self) -> str:
        """Return the part of the key that its objects share, without prefix and suffix.

        Raises ContractError for an unsafe topic name.
        """
        topic = object_names.require_safe(self.topic, "topic")
        epoch = f"epoch={self.epoch}/" if self.epoch else ""
        return f"{topic}/{epoch}{topic}+{self.partition}+{self.offset:020d}"


def put_value(store: ObjectStore, pipeline: str, letter: DeadLetter, value: bytes | None) -> None:
    """Store a letter's value. put() must follow: a value without the JSON object is not listed as a letter.

    Raises ObjectConflictError if the value of another record is stored at this offset.
    """
    if value is not None:
        key = f"{object_names.dead_letter_prefix(pipeline)}{letter.name()}{_VALUE}"
        if put_or_get(store, key, value).body != value:
            raise _other_record(pipeline, letter, key)


def put(store: ObjectStore, pipeline: str, letters: Sequence[DeadLetter]) -> None:
    """Store letters, after put_value() has stored their values.

    A letter that exists is not changed, so that a batch that is applied twice creates one letter. A letter that was
    closed stays closed: the batch can be applied again after an interruption, or by a target that was behind. Raises
    ObjectConflictError if the existing letter describes another record.
    """
    for letter in letters:
        key = _key(pipeline, letter)
        if _is_closed(store, pipeline, letter):
            if store.get(key) is None:  # else close() was interrupted, and will be called again
                store.delete([item.key for item in store.scan(f"{key.removesuffix(_LETTER)}.")])
            continue
        found = DeadLetter.model_validate_json(put_or_get(store, key, _body(letter)).body)
        if found.sha256 != letter.sha256:
            raise _other_record(pipeline, letter, key)


def keys(store: ObjectStore, pipeline: str) -> Iterator[str]:
    """Yield the keys of a pipeline's open dead letters."""
    return (item.key for item in store.scan(object_names.dead_letter_prefix(pipeline)) if item.key.endswith(_LETTER))


def letters(store: ObjectStore, pipeline: str, closed: bool = False) -> Iterator[DeadLetter]:
    """Yield a pipeline's open or closed dead letters in the order of their keys: partition 10 precedes partition 2."""
    prefix = object_names.closed_letter_prefix(pipeline) if closed else object_names.dead_letter_prefix(pipeline)
    for item in store.scan(prefix):
        stored = store.get(item.key) if item.key.endswith(_LETTER) else None
        if stored is not None:  # None: a value, or a letter that was closed after the listing
            yield DeadLetter.model_validate_json(stored.body)


def find(store: ObjectStore, pipeline: str, letter_id: str) -> DeadLetter:
    """Return the open letter with this id. Raises ContractError if it does not exist."""
    found = _ID.fullmatch(letter_id)
    if found is not None:
        probe = DeadLetter.of(found["topic"], int(found["partition"]), int(found["offset"]), "", None)
        stored = store.get(_key(pipeline, probe.model_copy(update={"epoch": int(found["epoch"] or 0)})))
        if stored is not None:
            return DeadLetter.model_validate_json(stored.body)
    raise ContractError(
        f"Cannot find dead letter {letter_id!r}: pipeline {pipeline} has no open letter with this id. "
        f"`cdc-lake dlq list {pipeline}` lists the open letters, `cdc-lake dlq list {pipeline} --closed` the closed "
        "ones."
    )


def value_of(store: ObjectStore, pipeline: str, letter: DeadLetter, original: bool = False) -> bytes | None:
    """Return a letter's replacement value if there is one, else its original value; None for a record without a value.

    With `original`, return the original value.

    Raises ObjectDamagedError if the value is missing, or differs from the letter's SHA-256.
    """
    digest = letter.sha256 if original else letter.replacement or letter.sha256
    if digest is None:
        return None
    prefix = object_names.closed_letter_prefix(pipeline) if letter.closed else object_names.dead_letter_prefix(pipeline)
    key = f"{prefix}{letter.name()}{_suffix(letter, digest)}"
    stored = store.get(key)
    if stored is None or _sha256(stored.body) != digest:
        what = "missing" if stored is None else "damaged: its SHA-256 differs from the letter's"
        drop = "" if letter.closed else f", or drop the letter with `cdc-lake dlq drop {pipeline} {letter.id}`"
        raise ObjectDamagedError(
            f"Cannot read dead letter {letter.id}: its value {key} is {what}. Restore the value from a backup{drop}."
        )
    return stored.body


def record_failed_replay(store: ObjectStore, pipeline: str, letter: DeadLetter, reason: str) -> None:
    """Store the reason of a failed replay in the letter, unless the letter was changed or closed meanwhile."""
    changes = {"reason": reason, "tries": letter.tries + 1, "tried_at": datetime.now(UTC)}
    _replace(store, pipeline, letter, letter.model_copy(update=changes))


def replace_value(store: ObjectStore, pipeline: str, letter: DeadLetter, value: bytes) -> DeadLetter:
    """Store a replacement for a letter's value, keep the original, and return the changed letter.

    Raises ContractError if another process changed or closed the letter.
    """
    digest = _sha256(value)
    _put_once(store, f"{object_names.dead_letter_prefix(pipeline)}{letter.name()}{_suffix(letter, digest)}", value)
    changed = letter.model_copy(update={"replacement": None if digest == letter.sha256 else digest})
    if not _replace(store, pipeline, letter, changed):
        raise ContractError(
            f"Cannot replace the value of dead letter {letter.id}: another process changed or closed the letter. "
            f"`cdc-lake dlq show {pipeline} {letter.id}` shows its new state, or `cdc-lake dlq list {pipeline} "
            "--closed` if it was closed."
        )
    return changed


def close(store: ObjectStore, pipeline: str, letter: DeadLetter, how: Outcome, instant: str | None) -> None:
    """Move a letter to the prefix of closed letters. An interrupted call can leave the letter open: call this again."""
    opened, closed = object_names.dead_letter_prefix(pipeline), object_names.closed_letter_prefix(pipeline)
    name = letter.name()
    suffixes = [_suffix(letter, digest) for digest in dict.fromkeys((letter.sha256, letter.replacement)) if digest]
    for suffix in suffixes:
        stored = store.get(f"{opened}{name}{suffix}")
        if stored is not None:
            _put_once(store, f"{closed}{name}{suffix}", stored.body)
    ended = letter.model_copy(update={"closed": Closing(how=how, at=datetime.now(UTC), instant=instant)})
    put_or_get(store, f"{closed}{name}{_LETTER}", _body(ended))
    # Delete the letter before its values, so that every listed letter has its values. A replacement that was replaced
    # again is deleted too.
    store.delete([f"{opened}{name}{_LETTER}"])
    store.delete([item.key for item in store.scan(f"{opened}{name}.")])


def reopen_replayed(store: ObjectStore, pipeline: str, topic: str, epoch: int, unreadable: Collection[str]) -> set[str]:
    """Open replayed letters of a topic's epoch again, for a table that is loaded from raw; return their ids.

    The table needs another replay of the records that are `unreadable` in raw (ids), and of those that were never
    landed. An interrupted call can leave a letter both open and closed: call this again.
    """
    opened, closed = object_names.dead_letter_prefix(pipeline), object_names.closed_letter_prefix(pipeline)
    found = set()
    for letter in list(letters(store, pipeline, closed=True)):
        if (letter.topic, letter.epoch) != (topic, epoch) or letter.closed is None or letter.closed.how != "replayed":
            continue
        if letter.object is not None and letter.id not in unreadable:
            continue
        name = letter.name()
        values = [item.key for item in store.scan(f"{closed}{name}.") if item.key.endswith(_VALUE)]
        for key in values:
            stored = store.get(key)
            if stored is not None:
                _put_once(store, f"{opened}{key.removeprefix(closed)}", stored.body)
        put_or_get(store, f"{opened}{name}{_LETTER}", _body(letter.model_copy(update={"closed": None})))
        store.delete([f"{closed}{name}{_LETTER}", *values])
        found.add(letter.id)
    return found


def _is_closed(store: ObjectStore, pipeline: str, letter: DeadLetter) -> bool:
    """Return whether a closed letter describes the same record."""
    stored = store.get(f"{object_names.closed_letter_prefix(pipeline)}{letter.name()}{_LETTER}")
    return stored is not None and DeadLetter.model_validate_json(stored.body).sha256 == letter.sha256


def _replace(store: ObjectStore, pipeline: str, before: DeadLetter, after: DeadLetter) -> bool:
    """Replace a letter unless it was changed or closed since it was read. Return whether it was replaced."""
    key = _key(pipeline, before)
    stored = store.get(key)
    if stored is None or DeadLetter.model_validate_json(stored.body) != before:
        return False
    try:
        store.replace(key, _body(after), stored.etag)
    except PreconditionFailedError:
        now = store.get(key)
        # A put that is retried after a lost response finds its own object.
        return now is not None and now.body == _body(after)
    return True


def _other_record(pipeline: str, letter: DeadLetter, key: str) -> ObjectConflictError:
    return ObjectConflictError(
        f"Cannot store dead letter {letter.id}: {key} is that of another record at this offset. The topic was probably "
        "re-created before its first batch was landed. Nothing was changed. Read the stored letter (`cdc-lake dlq show "
        f"{pipeline} {letter.id}`) and drop it (`cdc-lake dlq drop {pipeline} {letter.id}`); if there is no such "
        "letter, save and delete the object. Then run this again."
    )


def _put_once(store: ObjectStore, key: str, value: bytes) -> None:
    if put_or_get(store, key, value).body != value:
        raise ObjectConflictError(
            f"Cannot put {key}: it exists with another value. Nothing was changed. Find out which other program writes "
            "below this prefix."
        )


def _suffix(letter: DeadLetter, digest: str) -> str:
    return _VALUE if digest == letter.sha256 else f".{digest[:16]}{_VALUE}"


def _key(pipeline: str, letter: DeadLetter) -> str:
    return f"{object_names.dead_letter_prefix(pipeline)}{letter.name()}{_LETTER}"


def _body(letter: DeadLetter) -> bytes:
    return letter.model_dump_json(indent=1).encode()


def _sha256(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()
