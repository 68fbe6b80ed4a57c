"""The input of verify: the source at a point, the lake at a commit, and the raw events in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.contract.schema.value_rules import STRICT, ValueRules
from cdc_lake.contract.secret_fields import OpenSettings
from cdc_lake.contract.source.schema_registry import RegistryLocation
from cdc_lake.contract.source.source_access import SourceAccess
from cdc_lake.contract.source.visibility import Point
from cdc_lake.jobs.lake_state import LakeState


@dataclass(frozen=True)
class SourceTable:
    """A source table at an exported snapshot.

    `pages` is the number of its pages, which are read in ranges; None if one statement reads the table. For a polled
    table, `relation` is the SQL expression for FROM that is read instead of the table, and `settled` is the SQL
    condition for rows that did not change after the last poll (contract/source/polled_rows.py). The keys of its other
    rows are pending.
    """

    access: SourceAccess
    snapshot_id: str
    schema: str
    table: str
    pages: int | None
    relation: str = ""
    settled: str = ""


@dataclass(frozen=True)
class KafkaRange:
    """Records of a topic: [begin, end) by partition.

    `kafka` contains options of Spark's Kafka source, `epoch` is the source's epoch of the records, and `registry` is
    the schema registry of a topic in Avro.
    """

    topic: str
    begins: Mapping[int, int]
    ends: Mapping[int, int]
    kafka: OpenSettings
    epoch: int = 0
    registry: RegistryLocation | None = None


@dataclass(frozen=True)
class VerifySpec:
    """The comparison of one table.

    LakeTableSpec (jobs/lake_state.py) describes the fields that identify the lake table.
    `lake` is the compared state, None for a table without a commit. `later` contains records that the lake has not
    applied: their keys are pending. If it is None, `lake` covers the point, and keys that changed after the point are
    compared by means of the raw events since `base`, a state from before the point (None: since the first manifest).
    `limit` is the maximum number of listed differences.
    """

    location: S3Location
    pipeline: str
    topic: str
    uri: str
    versions: Sequence[TableSchema]
    source: SourceTable
    point: Point
    lake: LakeState | None
    base: LakeState | None = None
    later: KafkaRange | None = None
    values: ValueRules = STRICT
    limit: int = 20
    boundary: str | None = None

    @property
    def schema(self) -> TableSchema:
        """The newest captured schema."""
        return self.versions[-1]
