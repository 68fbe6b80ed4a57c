"""Find the states of a Hudi table that can still be read, from its timeline, without Spark.

A reader of the state at a commit needs the files of that commit. A clean deletes files that only older commits need;
its plan and its metadata contain the oldest commit whose files it keeps.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from cdc_lake.contract.errors import ContractError, ObjectDamagedError
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import instants, timeline_files

_COMMIT = re.compile(rf"(?P<instant>\d{{17}})\.({'|'.join(timeline_files.COMMITS)})")
_CLEAN = re.compile(r"(?P<instant>\d{17})\.clean(?P<state>\.requested|\.inflight)?")
_INSTANT = re.compile(rb"\d{17}")


def commits(store: ObjectStore, table_prefix: str) -> list[str]:
    """Return the instants of the completed commits that are not archived, oldest first."""
    names = timeline_files.names(store, table_prefix)
    return sorted(match["instant"] for match in map(_COMMIT.fullmatch, names) if match)


def readable(store: ObjectStore, table_prefix: str) -> list[str]:
    """Return the instants of the commits whose state can be read, oldest first.

    A clean that begins after this call can delete files of the oldest of them. Raises ObjectDamagedError if a clean's
    plan or metadata cannot be read.
    """
    found = commits(store, table_prefix)
    cleans = [match for match in map(_CLEAN.fullmatch, timeline_files.names(store, table_prefix)) if match]
    ended = {match["instant"] for match in cleans if not match["state"]}
    # A clean that has begun, but not ended, may have deleted files already.
    running = {match["instant"] for match in cleans} - ended
    kept = [_kept_from(store, table_prefix, f"{instant}.clean.requested", 0) for instant in running]
    # Not only the newest: if `history` was raised, an earlier clean kept less. The first instant is the clean's own.
    kept.extend(_kept_from(store, table_prefix, f"{instant}.clean", 1) for instant in ended)
    return [each for each in found if each >= max(kept, default="")]


def resolve(store: ObjectStore, table_prefix: str, when: str) -> str:
    """Return the instant of the commit that was the newest one at `when`.

    `when` is an instant of 17 digits, or a time such as 2026-11-25T10:00:00 or 2026-11-25 10:00+01:00, in UTC unless it
    has an offset. Raises ContractError for another text, for a table without a commit, and for a time whose state
    cannot be read; the message then names the oldest instant whose state can be read.
    """
    wanted = instant(when)
    kept = readable(store, table_prefix)
    if not kept:
        raise no_commit(table_prefix)
    earlier = [each for each in kept if each <= wanted]
    if not earlier:
        raise ContractError(
            f"Cannot read the state of {when}: the oldest state of the table at {table_prefix} that can be read is "
            f"that of commit {kept[0]} ({instants.time_of(kept[0]):%Y-%m-%d %H:%M:%S} UTC). Use that time or a later "
            "one."
        )
    return earlier[-1]


def instant(when: str) -> str:
    """Return a time as an instant of 17 digits, and an instant unchanged. Raises ContractError for another text."""
    if re.fullmatch(r"\d{17}", when):
        return when
    try:
        time = datetime.fromisoformat(when)
    except ValueError as error:
        raise ContractError(
            f"Cannot use {when!r} as a time: it has another format. Use an instant of 17 digits, or a time such as "
            "2026-11-25T10:00:00 (UTC) or 2026-11-25T10:00+01:00."
        ) from error
    time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    return f"{time:%Y%m%d%H%M%S}{time.microsecond // 1000:03d}"


def no_commit(table_prefix: str) -> ContractError:
    """Return the error for a table that has no state to read."""
    return ContractError(f"Cannot read the table at {table_prefix}: it has no commit yet. Materialise its asset first.")


def _kept_from(store: ObjectStore, table_prefix: str, name: str, place: int) -> str:
    """Return the oldest commit that a clean keeps: the instant at `place` in one of its files.

    Each file contains one Avro record, in which strings are stored as plain UTF-8, so that the file is not decoded
    (Hudi's HoodieCleanerPlan.avsc, HoodieCleanMetadata.avsc). Raises ObjectDamagedError if there is no such instant.
    """
    key = f"{table_prefix}.hoodie/{name}"
    stored = store.get(key)
    found = [] if stored is None else _INSTANT.findall(stored.body)
    if len(found) <= place:
        raise ObjectDamagedError(
            f"Cannot read {key}: it does not name the oldest commit that the clean keeps, so it is unknown "
            "which states of the table can be read. Read the newest state, or run this again after the next commit."
        )
    return str(found[place].decode())
