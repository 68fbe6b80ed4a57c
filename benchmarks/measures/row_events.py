"""Rows of a table as change events in raw objects, which all systems read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from benchmarks.peers.table_formats import Events, TableType
from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake_tests.integration.jobs.engines import Engines
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable

COLUMNS = (
    Column(name="id", type="bigint", nullable=False),
    Column(name="note", type="text"),
    Column(name="qty", type="integer"),
    Column(name="amount", type="text"),
)
EVENTS = Events(
    "id bigint, note string, qty int, amount string, __op string, __db string, __schema string, __table string, "
    "__lsn bigint, __txId bigint, __snapshot string, __source_ts_ms bigint, __deleted string",
    "id",
)
MANIFEST = 100_000
"""Records of a manifest of the first load."""


def event(number: int, lsn: int, snapshot: bool) -> Mapping[str, object]:
    """Return the change event of a row, as Debezium's unwrapped record."""
    return {
        "id": number,
        "note": None if number % 7 == 0 else f"note {number}" + " and more" * (number % 20),
        "qty": (number * 3 + lsn) % 1000,
        "amount": f"{number % 1000000 / 100:.2f}",
        "__op": "r" if snapshot else "u",
        "__db": "devdb",
        "__schema": "public",
        "__table": "orders",
        "__lsn": lsn,
        "__txId": lsn,
        "__snapshot": "true" if snapshot else "false",
        "__source_ts_ms": 1_700_000_000_000 + lsn,
        "__deleted": "false",
    }


class RawRows:
    """The events of a table of `rows` rows, in one chain of manifests; each of our tables is a target of it."""

    def __init__(self, engines: Engines, rows: int) -> None:
        self.rows = rows
        self._landed = LakeTable(engines, f"rows-{rows}", COLUMNS, ("id",), records_per_object=50_000)
        self._lsn = 1000

    def upsert_spec(self, table_type: TableType) -> UpsertSpec:
        """Return the spec of our table of this type."""
        return replace(self._landed.spec, target=table_type, table_type=table_type, dead_letter_limit=0)

    def load(self) -> list[str]:
        """Land the snapshot; return the URIs of its objects."""
        return [
            uri
            for first in range(0, self.rows, MANIFEST)
            for uri in self._land(event(n, 1, True) for n in range(first, min(first + MANIFEST, self.rows)))
        ]

    def change(self, numbers: Iterable[int]) -> list[str]:
        """Land updates of these rows; return the URIs of their objects."""
        self._lsn += 1
        return self._land(event(number, self._lsn, False) for number in numbers)

    def newest(self) -> range:
        """Return the newest 1% of the rows."""
        return range(self.rows - self.rows // 100, self.rows)

    @staticmethod
    def totals() -> Sequence[SparkColumn]:
        """Return the columns of a scan that reads every value of every row."""
        return F.count("*").alias("rows"), F.bit_xor(F.xxhash64(*(c.name for c in COLUMNS), "__lsn")).alias("content")

    def _land(self, events: Iterable[Mapping[str, object]]) -> list[str]:
        manifest = self._landed.deliver(list(events))
        return [f"s3a://{self._landed.engines.location.bucket}/{item.key}" for item in manifest.objects]
