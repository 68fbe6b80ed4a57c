"""The input of the upsert: a topic and the lake table to apply it to. Maintenance jobs use it as their table."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from cdc_lake.contract.asset_names import asset_name, lake_table_name
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import ObjectStore, S3Location
from cdc_lake.contract.schema.value_rules import STRICT, ValueRules
from cdc_lake.contract.table import lease
from cdc_lake.jobs.hudi.hudi_lake_table import HudiLakeTable
from cdc_lake.jobs.hudi.table_options import TableType
from cdc_lake.jobs.hudi.writer import HudiTable
from cdc_lake.jobs.lake_table import LakeTable


@dataclass(frozen=True)
class UpsertSpec:
    """A topic and the table to apply it to.

    With `nullify`, a deleted row keeps only its key and partition. `target` is the target's name if it is part of the
    table's names. `source_table` is `schema.table`, whose captured schema versions decode the records. With more than
    `dead_letter_limit` unreadable records in one batch the run fails: the cause is then probably not in the records.
    `until` is the last manifest to apply, which was landed before the schema was captured: a record with a field of no
    captured version then becomes a dead letter. Without `until`, all manifests are applied, and such a field stops the
    run.
    """

    location: S3Location
    pipeline: str
    topic: str
    source_table: str
    table: str
    key: Sequence[str]
    partition_by: Sequence[str] = ()
    target: str = ""
    table_type: TableType = "cow"
    nullify: bool = False
    history_hours: int = 1
    values: ValueRules = STRICT
    until: int | None = None
    dead_letter_limit: int = 1000
    lease_seconds: float = lease.SECONDS
    lease_wait_seconds: float = lease.WAIT_SECONDS
    scheme: str = "s3a"
    owner: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def prefix(self) -> str:
        """The table's prefix in the bucket."""
        return object_names.lake_prefix(self.pipeline, lake_table_name(self.table, self.target))

    @property
    def lease_key(self) -> str:
        """The key of the table's writer lease."""
        return object_names.lease_key(self.pipeline, lake_table_name(self.table, self.target))

    @property
    def asset(self) -> str:
        """The name of the table's asset, as Dagster shows it."""
        return asset_name(self.pipeline, "lake", self.table, self.target)

    def uri(self) -> str:
        """The table's absolute URI for Spark."""
        return f"{self.scheme}://{self.location.bucket}/{self.prefix.rstrip('/')}"

    def hudi_table(self) -> HudiTable:
        """Return the table's settings for Hudi."""
        return HudiTable(
            self.table, self.uri(), self.key, self.partition_by, self.table_type, self.nullify, self.history_hours
        )

    def writer_lease(self, store: ObjectStore) -> AbstractContextManager[lease.Lease]:
        """Return a context manager that holds the table's writer lease; entering it may raise LeaseHeldError."""
        return lease.held(store, self.lease_key, self.owner, self.lease_seconds, self.lease_wait_seconds)

    def lake_table(self, store: ObjectStore) -> LakeTable:
        """Return the table as jobs write, read and maintain it."""
        return HudiLakeTable(store, self.prefix, self.hudi_table())
