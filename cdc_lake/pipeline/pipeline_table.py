"""One table of a pipeline in one of its targets: its names in each stage, and the specs of its jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import dagster as dg

from cdc_lake.contract.asset_names import asset_name, lake_table_name
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema.transforms import RecordKey, TableTransforms
from cdc_lake.contract.schema.value_rules import ValueRules
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.landing.typed_rows import TypedLanding
from cdc_lake.jobs.maintenance.purge import PurgeSpec
from cdc_lake.pipeline.spec.field_types import seconds
from cdc_lake.pipeline.spec.landing import LandingSpec
from cdc_lake.pipeline.spec.table import PollSpec, TableSpec
from cdc_lake.pipeline.spec.table_transforms import excluded_columns, table_transforms
from cdc_lake.pipeline.spec.target import DEFAULT_TARGET, TargetSpec
from cdc_lake.pipeline.spec.transforms import At

if TYPE_CHECKING:
    from cdc_lake.pipeline.pipeline import Pipeline


@dataclass(frozen=True)
class PipelineTable:
    """One table of a pipeline in one of its targets: the specs, and the names in each stage.

    Stages before the lake do not depend on the target.
    """

    pipeline: Pipeline
    spec: TableSpec
    target: TargetSpec

    @property
    def name(self) -> str:
        """The table's name, in the source and in the lake."""
        return self.spec.name

    @property
    def source_table(self) -> str:
        """`schema.table` of the records: the table at the source, unless `poll` names another table or a query."""
        return f"{self.pipeline.spec.source.schema_}.{self.name}"

    @property
    def poll(self) -> PollSpec:
        """The table's poll settings. Raises ContractError for a table that is captured from the log."""
        if self.spec.poll is None:
            raise ContractError(f"Cannot poll table {self.name} of {self.pipeline.name}: its source.kind is log.")
        return self.spec.poll

    @property
    def polled_table(self) -> str:
        """The name of the table at the source whose columns are polled."""
        return self.poll.table or self.name

    @property
    def topic(self) -> str:
        """The topic of the table's changes."""
        source = self.pipeline.spec.source
        return f"{self.pipeline.spec.stream.prefix}.{source.schema_}.{self.spec.topic or self.name}"

    @property
    def landing(self) -> LandingSpec:
        """The table's landing: the pipeline's, with the table's own fields."""
        return self.pipeline.spec.landing_of(self.spec)

    @property
    def in_targets(self) -> tuple[PipelineTable, ...]:
        """This table in each target."""
        return tuple(replace(self, target=target) for target in self.pipeline.spec.targets)

    @property
    def hudi_targets(self) -> tuple[PipelineTable, ...]:
        """This table in each Hudi target."""
        return tuple(each for each in self.in_targets if each.is_hudi)

    @property
    def in_reconciled_target(self) -> PipelineTable:
        """This table in the target whose keys a reconciliation reads: the first Hudi target, or else the first target.

        The deletes reach all targets through the topic.
        """
        return (*self.hudi_targets, *self.in_targets)[0]

    @property
    def is_hudi(self) -> bool:
        """Whether the table is a Hudi table; otherwise it is a catalog entry over the raw objects."""
        return self.target.format == "hudi"

    @property
    def database(self) -> str:
        """The Glue database of the target."""
        return self.target.database

    @property
    def lake_table(self) -> str:
        """The lake table's name within the pipeline: includes the target's name, unless that is `lake`."""
        return lake_table_name(self.name, self._target)

    @property
    def catalog_table(self) -> str:
        """The catalog table that Athena and Trino read.

        For a merge-on-read table, it contains the base files; for a Parquet target, all changes.
        """
        if not self.is_hudi:
            return f"{self.name}_raw"
        return f"{self.name}_ro" if self.is_merge_on_read else self.name

    @property
    def is_merge_on_read(self) -> bool:
        """Whether the table is a merge-on-read Hudi table."""
        return self.target.table_type == "mor"

    @property
    def view(self) -> str:
        """The view of the newest rows, without those that are deleted at the source."""
        return f"{self.catalog_table}_current" if self.is_hudi else f"{self.name}_latest"

    @property
    def catalog_entries(self) -> tuple[str, ...]:
        """The names of the view and of the tables in the catalog: the view first, because it depends on a table."""
        merged = (f"{self.name}_rt",) if self.is_merge_on_read else ()
        return (self.view, self.catalog_table, *merged)

    @property
    def lake_prefix(self) -> str:
        """The Hudi table's prefix in the bucket."""
        return object_names.lake_prefix(self.pipeline.name, self.lake_table)

    @property
    def lease_key(self) -> str:
        """The key of the lake table's writer lease."""
        return object_names.lease_key(self.pipeline.name, self.lake_table)

    @property
    def _target(self) -> str:
        return "" if self.target.name == DEFAULT_TARGET else self.target.name

    def asset(self, stage: str) -> str:
        """Return the name of the table's asset of a stage, as Dagster shows it."""
        return asset_name(self.pipeline.name, stage, self.name, self._target if stage == "lake" else "")

    def key(self, stage: str) -> dg.AssetKey:
        """Return the key of the table's asset of a stage."""
        return dg.AssetKey.from_user_string(self.asset(stage))

    def tags(self, stage: str) -> dict[str, str]:
        """Return the tags of the table's asset of a stage."""
        return self.pipeline.tags(stage, self.name)

    @property
    def values(self) -> ValueRules:
        """The rules for values that the lake's types cannot represent."""
        return ValueRules(self.spec.values.infinity, self.spec.values.nan)

    @property
    def excluded_columns(self) -> list[str]:
        """The columns that the YAML excludes, by exclude_columns or by a transform."""
        transforms = self.pipeline.spec.transforms
        return list(dict.fromkeys([*self.spec.exclude_columns, *excluded_columns(transforms, self.name)]))

    @property
    def transforms(self) -> TableTransforms:
        """The pipeline's transforms for this table's captured columns."""
        return self._transforms(None)

    @property
    def source_transforms(self) -> TableTransforms:
        """Those of `transforms` that the records in Kafka have."""
        return self._transforms("source")

    @property
    def landing_transforms(self) -> TableTransforms | None:
        """Those of `transforms` that are applied at landing, by the names of the records in Kafka; None without any."""
        found, names = self._transforms("landing"), self.source_transforms.renamed
        cast = {names.get(name, name): kind for name, kind in found.cast.items()}
        return replace(found, cast=cast, key=None) if found.copies_records else None

    @property
    def record_key(self) -> RecordKey | None:
        """The key of the records in Kafka, by the names in these records; None if it is the table's key."""
        key, names = self.transforms.key, self.source_transforms.renamed
        return None if key is None else replace(key, fields=tuple(names.get(name, name) for name in key.fields))

    def _transforms(self, at: At | None) -> TableTransforms:
        return table_transforms(self.pipeline.spec.transforms, self.name, self.topic, at)

    @property
    def typed_landing(self) -> TypedLanding | None:
        """The settings for decoding the topic's records when they are landed; None if they are not decoded.

        Parquet objects, objects partitioned by columns, and those that a catalog table reads need decoded records.
        """
        landing, read_in_place = self.landing, any(not each.is_hudi for each in self.in_targets)
        if landing.compression is None and not landing.partition_by and not read_in_place:
            return None
        return TypedLanding(self.source_table, landing.compression, self.values, tuple(landing.partition_by))

    def upsert_spec(self, location: S3Location, owner: str) -> UpsertSpec:
        """Return the spec of the upsert job for this table."""
        return UpsertSpec(
            location=location,
            pipeline=self.pipeline.name,
            topic=self.topic,
            source_table=self.source_table,
            table=self.name,
            target=self._target,
            table_type=self.target.table_type,
            history_hours=seconds(self.spec.history) // 3600,
            nullify=self.target.deletes == "nullify",
            key=tuple(self.spec.key),
            partition_by=tuple(self.spec.partition_by),
            values=self.values,
            dead_letter_limit=self.pipeline.spec.dead_letter_limit,
            owner=owner,
        )

    def purge_spec(self, location: S3Location, owner: str) -> PurgeSpec:
        """Return the spec of the purge job for this table."""
        return PurgeSpec(self.upsert_spec(location, owner), seconds(self.pipeline.spec.replay_window))
