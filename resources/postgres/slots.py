"""Reads and drops replication slots: the consumer's position in the WAL, and the WAL that the server keeps for it."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg2 import errors as pg_errors
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case
from tenacity import RetryError, Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from resources.errors import SlotBusy
from resources.postgres import lsn


@dataclass(frozen=True)
class SlotInfo:
    """One logical replication slot."""

    name: str
    plugin: str
    database: str
    active: bool
    restart_lsn: int | None
    """The start of the WAL that it still needs; None if it was invalidated."""
    confirmed_flush_lsn: int | None
    """The consumer has confirmed everything that was committed before this."""
    retained_bytes: int | None
    """The size of the WAL that the server keeps for it."""
    wal_status: str | None
    """reserved, extended, unreserved or lost (pg_replication_slots)."""
    invalidation_reason: str | None
    """Why the server invalidated it; an invalidated slot cannot be used again."""


# to_jsonb, because the column invalidation_reason exists only from PostgreSQL 17 on; before, only wal_status shows it.
_SLOT = """
select s.slot_name::text, s.plugin::text, s.database::text, s.active, s.restart_lsn::text,
       s.confirmed_flush_lsn::text, pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::bigint, s.wal_status,
       coalesce(to_jsonb(s) ->> 'invalidation_reason', case when s.wal_status = 'lost' then 'wal_removed' end)
  from pg_replication_slots s
 where s.slot_name = %s and s.slot_type = 'logical'
"""


def slot(connection: Connection, name: str) -> SlotInfo | None:
    """Return the logical replication slot, None if it does not exist."""
    with connection.cursor() as cursor:
        cursor.execute(_SLOT, (name,))
        row = cursor.fetchone()
    if row is None:
        return None
    return SlotInfo(
        name=row[0],
        plugin=row[1],
        database=row[2],
        active=row[3],
        restart_lsn=lsn.to_int(row[4]) if row[4] else None,
        confirmed_flush_lsn=lsn.to_int(row[5]) if row[5] else None,
        retained_bytes=None if row[6] is None else max(0, int(row[6])),
        wal_status=row[7],
        invalidation_reason=row[8],
    )


def drop_slot(connection: Connection, name: str, timeout_seconds: float = 30.0) -> bool:
    """Drop the slot, and terminate the connection that reads from it; return whether the slot existed.

    Raises:
        SlotBusy: a consumer reconnected repeatedly until the timeout.
    """
    if slot(connection, name) is None:
        return False
    attempts = Retrying(
        stop=stop_after_delay(timeout_seconds),
        wait=wait_fixed(0.1),
        # A consumer can reconnect between the end of its walsender and the drop, so both are retried until the timeout.
        retry=retry_if_exception_type(pg_errors.ObjectInUse) | retry_if_result(lambda done: not done),
    )
    try:
        attempts(_drop_once, connection, name)
    except RetryError as error:
        raise SlotBusy(
            f"Cannot drop replication slot {name}: its consumer reconnected after each disconnection for"
            f" {timeout_seconds:.0f} s. Stop or delete the connector that reads from the slot, then run this again."
        ) from error
    return True


def _drop_once(connection: Connection, name: str) -> bool:
    """Terminate the walsender if there is one, otherwise drop the slot; return whether the slot is gone."""
    with connection.cursor() as cursor:
        cursor.execute("select active_pid from pg_replication_slots where slot_name = %s", (name,))
        row = cursor.fetchone()
        if row is None:
            return True
        if row[0] is not None:
            cursor.execute("select pg_terminate_backend(%s)", (row[0],))
            return False
        cursor.execute("select pg_drop_replication_slot(%s)", (name,))
    return True
