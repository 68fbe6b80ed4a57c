"""Exports a snapshot of a PostgreSQL database and holds it open, so that other connections can read at the same point.

A transaction in REPEATABLE READ sees the database as of its first statement, without later commits, and
pg_current_snapshot() describes exactly what it sees. pg_export_snapshot() lets other connections take the same snapshot
until this transaction ends
(https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-SNAPSHOT-SYNCHRONIZATION).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from psycopg2 import Error
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.errors import ResourceError
from resources.postgres import lsn, slots
from resources.postgres.resource import Postgres
from resources.postgres.table_files import TableFiles, table_files

# Other connections read while the snapshot is held, which can take longer than the server's usual timeouts.
_NO_LIMITS = """
select set_config(name, '0', false) from pg_settings
 where name in ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout',
                'idle_session_timeout')
"""


@dataclass(frozen=True)
class Snapshot:
    """The result of pg_current_snapshot(), in 64-bit ids of top-level transactions."""

    xmin: int
    """All transactions with a lower id had ended."""
    xmax: int
    """No transaction with this id or a higher one had ended."""
    in_progress: frozenset[int]
    """The transactions from xmin to below xmax that had not ended."""

    @classmethod
    def parse(cls, text: str) -> Snapshot:
        """Parse `xmin:xmax:xip,xip,…`. Raises ValueError for another text."""
        try:
            xmin, xmax, listed = text.split(":")
            found = cls(int(xmin), int(xmax), frozenset(int(each) for each in listed.split(",") if each))
        except ValueError as error:
            raise ValueError(f"{text!r} is not a snapshot; PostgreSQL writes one as 10:20:10,14,15") from error
        if not (found.xmin <= found.xmax and all(found.xmin <= xid < found.xmax for xid in found.in_progress)):
            raise ValueError(f"{text!r} is not a snapshot: its ids are not in order")
        return found


@dataclass(frozen=True)
class ConsistentPoint:
    """A point of the database, valid while its snapshot is held."""

    snapshot_id: str
    """For `SET TRANSACTION SNAPSHOT`."""
    snapshot: Snapshot
    lsn: int
    """The end of the WAL after the snapshot was taken; all transactions that it sees were committed before this LSN."""
    horizon: int
    """The slot's restart_lsn before the snapshot was taken; 0 without a slot."""
    connection: Connection = field(repr=False)

    def files(self, schema: str, table: str) -> TableFiles:
        """Return the table's current files, not those at the snapshot. Raises TableMissing."""
        return table_files(self.connection, schema, table)


@contextmanager
def consistent_point(postgres: Postgres, slot: str) -> Iterator[ConsistentPoint]:
    """Take a snapshot and hold it during the block; `slot` is the replication slot that streams the changes.

    Raises what Postgres.connect() raises, and ResourceError if the server is a standby or ends the connection.
    """
    taken = False
    with postgres.connect() as connection:
        try:
            found = _take(connection, slot)
            taken = True
            yield found
            with connection.cursor() as cursor:
                cursor.execute("rollback")
        except Error as error:
            if taken and not connection.closed:
                raise  # an error of the block, of another connection
            reason = str(error).strip().partition("\n")[0]
            raise ResourceError(
                f"Cannot hold the snapshot of database {connection.info.dbname}: {reason}. Nothing was changed.",
                "Run this again. If it fails again, check whether the server ends long transactions.",
            ) from error


def _take(connection: Connection, slot: str) -> ConsistentPoint:
    with connection.cursor() as cursor:
        # Polls do not wait for a transaction of this name (polling.py), because it only reads.
        cursor.execute("set application_name to 'cdc-lake verify'")
    # Read restart_lsn before the snapshot: it only advances, and only past transactions that have ended.
    found = slots.slot(connection, slot)
    with connection.cursor() as cursor:
        cursor.execute("select pg_is_in_recovery()")
        if (cursor.fetchone() or (True,))[0]:
            raise ResourceError(
                f"Cannot export a snapshot: the server of database {connection.info.dbname} is a standby.",
                "Use the address of the primary.",
            )
        cursor.execute(_NO_LIMITS)
        cursor.execute("begin isolation level repeatable read read only")
        cursor.execute("select pg_export_snapshot(), pg_current_snapshot()::text")
        exported = cursor.fetchone()
        cursor.execute("select pg_current_wal_insert_lsn()::text")
        inserted = cursor.fetchone()
    if exported is None or inserted is None:
        raise RuntimeError("pg_export_snapshot() returned no row")
    return ConsistentPoint(
        snapshot_id=exported[0],
        snapshot=Snapshot.parse(exported[1]),
        lsn=lsn.to_int(inserted[0]),
        horizon=(found.restart_lsn or 0) if found else 0,
        connection=connection,
    )
