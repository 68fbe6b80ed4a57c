"""Check a Hudi table's instants against the clock: they must be in UTC and not in the future.

Hudi names a commit after the time at which it begins, and orders commits by name. Names in local time go back by an
hour when daylight saving ends, and differ between machines, so that a new commit can sort before an older one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from cdc_lake.contract.errors import (
    LocalTimeError,
    ObjectConflictError,
    ObjectDamagedError,
    TableAheadError,
    reset_advice,
)
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import ObjectStore, PreconditionFailedError, StoredObject

ZONE = "hoodie.table.timeline.timezone"
IN_UTC = "UTC"
LOCAL = "LOCAL"
"""Hudi's default: the time zone of the writer's JVM."""
_ZONE_LINE = re.compile(rf"^{re.escape(ZONE)}[ \t]*[=:][ \t]*(?P<zone>\w*)[ \t]*$", re.MULTILINE)
_INSTANT = re.compile(r"(?P<seconds>\d{14})(?P<milliseconds>\d{3})?\.")

Clock = Callable[[], datetime]
STORE_CLOCK_SECONDS = 60.0
"""How far the store's clock may be behind a writer's before a commit fails."""


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def time_of(instant: str) -> datetime:
    """Return the time of an instant in UTC. Raises ValueError for a text that is not an instant."""
    seconds = datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return seconds + timedelta(milliseconds=int(instant[14:17] or 0))


def zone(store: ObjectStore, table_prefix: str) -> str | None:
    """Return the time zone in the table's properties, `UTC` or `LOCAL`; None for a table that does not exist."""
    stored = store.get(_properties_key(table_prefix))
    return None if stored is None else _zone(stored)


def newest(store: ObjectStore, table_prefix: str) -> str | None:
    """Return the newest instant of the timeline, of any action and state; None for an empty timeline."""
    folder = f"{table_prefix}.hoodie/"
    listed = (item.key.removeprefix(folder) for item in store.scan(folder, recursive=False))
    return max((name.partition(".")[0] for name in listed if _INSTANT.match(name)), default=None)


def ahead(store: ObjectStore, table_prefix: str, now: datetime) -> timedelta:
    """Return how far the newest instant, read as UTC, is in the future; negative if it is in the past or missing."""
    instant = newest(store, table_prefix)
    return timedelta.min if instant is None else time_of(instant) - now


def require_writable(store: ObjectStore, table_prefix: str, now: Clock = utc_now) -> None:
    """Check that a commit that begins now sorts after all others. Reads one object and one listing.

    Raises LocalTimeError for a table whose instants are in local time, TableAheadError if one is in the future.
    """
    found = zone(store, table_prefix)
    if found is None:
        return
    if found != IN_UTC:
        raise LocalTimeError(
            f"Cannot write the Hudi table at {table_prefix}: its commits are named in local time, which goes back when "
            "daylight saving ends and differs between machines. "
            f"Run `cdc-lake migrate {object_names.pipeline_of(table_prefix)}`, which sets UTC."
        )
    moment = now()
    lead = ahead(store, table_prefix, moment)
    if lead > timedelta(0):
        raise TableAheadError(
            f"Cannot write the Hudi table at {table_prefix}: its newest instant {newest(store, table_prefix)} (UTC) is "
            f"{lead.total_seconds():.1f} s later than this machine's clock ({moment:%Y-%m-%d %H:%M:%S} UTC), so that a "
            "new commit would sort before it. Compare the clocks of the machines that write the table, then run this "
            "again once that time has passed."
        )


def await_store_clock(
    store: ObjectStore,
    table_prefix: str,
    key: str,
    put: Callable[[], object],
    seconds: float = STORE_CLOCK_SECONDS,
) -> None:
    """Wait until an object that is put now is, by the store's clock, not older than the table's newest instant.

    `put` writes the object `key`. It is called until the object's `Last-Modified` time is late enough. Raises
    TableAheadError if it is still too early after `seconds`.
    """
    instant = newest(store, table_prefix)
    until = None if instant is None else time_of(instant)

    def reach() -> None:
        put()
        modified = next(store.scan(key)).modified
        if instant is not None and until is not None and modified < until:
            raise TableAheadError(
                f"Cannot commit to the Hudi table at {table_prefix}: the store's clock ({modified:%Y-%m-%d %H:%M:%S} "
                f"UTC, from {key}) is behind the table's newest instant {instant} ({until:%Y-%m-%d %H:%M:%S} UTC), so "
                "that readers would miss the commit's changes. Nothing was committed. Synchronize the clocks of this "
                "machine and of the store, then run this again."
            )

    behind = retry_if_exception_type(TableAheadError)
    Retrying(retry=behind, stop=stop_after_delay(seconds), wait=wait_fixed(0.1), reraise=True)(reach)


def set_utc(store: ObjectStore, table_prefix: str) -> None:
    """Write UTC into the table's properties, and change nothing else. The caller must hold the table's lease.

    Raises ObjectDamagedError if the table has no properties, ObjectConflictError if another process replaced
    them at the same moment.
    """
    key = _properties_key(table_prefix)
    stored = store.get(key)
    if stored is None:
        raise ObjectDamagedError(
            f"Cannot set the time zone of the Hudi table at {table_prefix}: {key} is missing. Restore the object, or "
            f"{reset_advice(object_names.pipeline_of(table_prefix))}."
        )
    text = stored.body.decode()
    line = f"{ZONE}={IN_UTC}"
    if _ZONE_LINE.search(text):
        changed = _ZONE_LINE.sub(line, text)
    else:
        changed = f"{text}{'' if text.endswith(chr(10)) else chr(10)}{line}\n"
    try:
        store.replace(key, changed.encode(), stored.etag)
    except PreconditionFailedError as error:
        now = store.get(key)
        if now is not None and _zone(now) == IN_UTC:
            return  # a put that was retried after a lost answer
        raise ObjectConflictError(
            f"Cannot set the time zone of the Hudi table at {table_prefix}: another process replaced {key} at the "
            "same moment. Run this again."
        ) from error


def _properties_key(table_prefix: str) -> str:
    return f"{table_prefix}.hoodie/hoodie.properties"


def _zone(stored: StoredObject) -> str:
    found = _ZONE_LINE.search(stored.body.decode())
    return LOCAL if found is None else found["zone"].upper()
