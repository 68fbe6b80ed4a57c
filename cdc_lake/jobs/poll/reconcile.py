"""reconcile: find the keys of the lake that the source does not have any more, and send a delete for each.

The lake is read as of a state that was complete before the source is read. A row that is inserted after the source
was read gets the number of a later poll, so it is newer than the delete.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract import failpoints
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.contract.schema.sent_columns import sent_columns
from cdc_lake.contract.schema.transforms import RecordKey, TableTransforms
from cdc_lake.contract.schema.value_rules import STRICT, ValueRules
from cdc_lake.contract.secret_fields import OpenSettings
from cdc_lake.contract.source.poll_state import Bound
from cdc_lake.contract.source.polled_rows import PolledRows
from cdc_lake.contract.source.source_access import SourceAccess
from cdc_lake.jobs import lake_state
from cdc_lake.jobs.apply import debezium_types
from cdc_lake.jobs.apply.fold import cached
from cdc_lake.jobs.executor_errors import contract_errors
from cdc_lake.jobs.lake_state import LakeState
from cdc_lake.jobs.poll import delete_records, jdbc_source, record_sql
from cdc_lake.jobs.poll.poll import KEY, VALUE, send


@dataclass(frozen=True)
class ReconcileSpec:
    """The input of a reconciliation: the source's rows, the lake table's state, and the topic.

    `number` is the poll number of the deletes, and `upper` their time. `kafka`, `transforms` and `record_key` are the
    same as in PollSpec. LakeTableSpec (jobs/lake_state.py) describes the fields that identify the lake table.
    """

    access: SourceAccess
    rows: PolledRows
    location: S3Location
    pipeline: str
    topic: str
    uri: str
    versions: Sequence[TableSchema]
    lake: LakeState
    kafka: OpenSettings
    number: int
    upper: Bound
    values: ValueRules = STRICT
    boundary: str | None = None
    transforms: TableTransforms | None = None
    record_key: RecordKey | None = None

    @property
    def schema(self) -> TableSchema:
        """The newest captured schema."""
        return self.versions[-1]


@dataclass(frozen=True)
class ReconcileReport:
    """The result: the numbers of keys read from lake and source, the number of deletes sent, and the duration."""

    lake_keys: int
    source_keys: int
    deletes: int
    seconds: float


@contract_errors()
def run(spark: SparkSession, spec: ReconcileSpec) -> ReconcileReport:
    """Send a delete for each key that only the lake has. Raises SourceUnreadableError."""
    started = time.monotonic()
    columns, key = list(sent_columns(spec.schema.columns, spec.transforms)), [name.lower() for name in spec.schema.key]
    lake = lake_state.rows(spark, spec, spec.lake).where(~F.coalesce("__deleted", F.lit(False)))
    table = spec.schema.table
    with ExitStack() as caches:
        with jdbc_source.source_errors("reconcile", table, sending=False):
            source = caches.enter_context(cached(_source_keys(spark, spec)))
            lake_keys, source_keys = lake.count(), source.count()
            event = {
                **record_sql.event_fields(
                    spec.access.database, table, spec.number, int(spec.upper.at.timestamp() * 1000)
                ),
                "__op": "d",
                "__deleted": "true",
            }
            records = lake.join(source, key, "left_anti").select(
                delete_records.record_key(spec.record_key or RecordKey(spec.schema.key), columns).alias(KEY),
                delete_records.record_value(columns, event, lake.columns).alias(VALUE),
            )
            records = caches.enter_context(cached(records))
            deletes = records.count()
        failpoints.reached("reconcile.before_deletes")
        if deletes:
            with jdbc_source.source_errors("reconcile", table, sending=True):
                send(spark, records, spec.topic, spec.kafka)
        failpoints.reached("reconcile.after_deletes")
    return ReconcileReport(lake_keys, source_keys, deletes, time.monotonic() - started)


def _source_keys(spark: SparkSession, spec: ReconcileSpec) -> DataFrame:
    """Return the keys of the source's rows, with the names and types of the lake."""
    by_name = {column.name: column for column in spec.schema.columns}
    text = record_sql.key_sql(RecordKey(spec.schema.key), spec.schema.columns)
    rows = jdbc_source.read(spark, spec.access, f"select {text} as {KEY} from {spec.rows.relation} q")  # noqa: S608 - checked names
    fields = F.from_json(KEY, ", ".join(f"`{name}` string" for name in spec.schema.key))
    parsed = rows.select(fields.alias("fields"))
    return parsed.select(
        *(
            debezium_types.parse_value(by_name[name], F.col("fields").getField(name), spec.values).value.alias(
                name.lower()
            )
            for name in spec.schema.key
        )
    )
