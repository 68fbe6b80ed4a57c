"""The fields of a pipeline's YAML, validated when the definitions load."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from cdc_lake.pipeline.spec.dataset import Datasets
from cdc_lake.pipeline.spec.field_types import (
    Count,
    Duration,
    Identifier,
    Owner,
    YamlFiles,
    repeated,
    with_verb,
)
from cdc_lake.pipeline.spec.landing import LandingSpec, StreamSpec
from cdc_lake.pipeline.spec.monitoring import ChecksSpec, FreshnessSpec
from cdc_lake.pipeline.spec.source import HEARTBEAT_TABLE, NOTIFICATIONS, SIGNAL_TABLE, SourceSpec
from cdc_lake.pipeline.spec.table import TableSpec
from cdc_lake.pipeline.spec.table_transforms import excluded_columns, of_table
from cdc_lake.pipeline.spec.target import DEFAULT_TARGET, TargetSpec
from cdc_lake.pipeline.spec.transform_rules import find_fault
from cdc_lake.pipeline.spec.transforms import Transform
from cdc_lake.yaml_model import YamlModel, error_lines, field_error

Mode = Literal["triggered", "continuous"]


class PipelineSpec(YamlModel):
    """A whole pipeline: the `attributes` of its YAML."""

    name: Identifier = Field(description="the pipeline's name, which is the name of its folder")
    description: str = Field(default="", description="the purpose of the pipeline")
    owners: list[Owner] = Field(default_factory=lambda: ["team:data"], description="team:NAME or e-mail addresses")
    source: SourceSpec = Field(description="a mapping with kind, database, schema, tables, publication")
    stream: StreamSpec = Field(description="a mapping with prefix, partitions, format, registry")
    landing: LandingSpec = Field(default_factory=LandingSpec, description="when and how raw objects are written")
    tables: list[TableSpec] = Field(min_length=1, description="a list with the name and key of each table")
    targets: list[TargetSpec] = Field(
        default_factory=lambda: [TargetSpec(name=DEFAULT_TARGET, database="datalake")],
        min_length=1,
        description="a list of sets of lake tables, each with name, database, format, table_type, deletes",
    )
    transforms: list[Transform] = Field(
        default_factory=list,
        description="a list of changes to records: hash, MaskField, InsertField, ReplaceField, Cast, ValueToKey, "
        "ExtractField$Key",
    )
    mode: Mode = Field(
        default="triggered",
        description="triggered (sensors launch runs) or continuous (one run lands and applies until it is terminated)",
    )
    datasets: Datasets = Field(
        default_factory=list,
        description="SELECTs over the lake's tables: a file name (a view) or a mapping with sql and partition_by (a "
        "refined table)",
    )
    dashboards: YamlFiles = Field(default_factory=list, description="dashboards over the datasets")
    checks: ChecksSpec = Field(default_factory=ChecksSpec, description="a mapping with verify_every")
    freshness: FreshnessSpec = Field(default_factory=FreshnessSpec, description="a duration for each stage")
    replay_window: Duration = Field(
        default="7d",
        description="how long a topic keeps its records, and a table with deletes: hard its tombstones, such as 7d",
    )
    dead_letter_limit: Count = Field(
        default=1000, description="a run fails if it finds more unreadable records than this; fewer become dead letters"
    )
    retained_wal_limit_mb: Count = Field(
        default=1024, description="slot_healthy fails if the slot retains more WAL than this, in MB"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [table.name for table in self.tables]
        if twice := repeated(names):
            raise self._invalid(
                "tables", names, f"name each table once: {with_verb(twice, 'appears', 'appear')} more than once"
            )
        if self.source.kind == "log":
            self._require_log_fields(names)
        else:
            self._require_query_fields()
        for field in ("name", "database"):
            if twice := repeated(getattr(target, field) for target in self.targets):
                raise self._invalid("targets", twice, f"give each target a {field} of its own")
        if self.landing.sink is not None and self.stream.format == "avro":
            raise self._invalid("landing", None, "remove sink: only the land job lands Avro")
        self._require_suitable_landings()
        self._require_readable_objects()
        self._require_suitable_transforms()
        self._require_applicable_at_landing()
        taken = {
            f"{name}{suffix}"
            for name in names
            for suffix in ("", "_current", "_ro", "_ro_current", "_rt", "_raw", "_latest")
        }
        if clash := sorted(taken & {dataset.name for dataset in self.datasets}):
            raise self._invalid("datasets", clash, f"{clash[0]}.sql would replace a lake table or its view; rename it")
        return self

    def landing_of(self, table: TableSpec) -> LandingSpec:
        """Return the landing of a table: the pipeline's, with the table's own fields."""
        return self.landing.with_overrides(table.landing)

    def _require_suitable_landings(self) -> None:
        for table in self.tables:
            try:
                landing = self.landing_of(table)
            except ValidationError as error:
                reasons = "; ".join(error_lines(error, "landing"))
                raise self._invalid("tables", None, f"{table.name}: landing: {reasons}") from None
            if landing.format == "avro" and self.stream.format != "avro":
                reason = "format avro requires stream.format avro, whose schemas it stores"
                field, name = ("landing", "") if table.landing is None else ("tables", f"{table.name}: landing: ")
                raise self._invalid(field, None, f"{name}{reason}")

    def _require_readable_objects(self) -> None:
        """Raise if a Parquet target cannot read raw objects, or if Hudi-only fields are set without a Hudi target."""
        parquet = [target.name for target in self.targets if target.format == "parquet"]
        if parquet and self.landing.sink is not None:
            raise self._invalid("landing", None, f"remove sink: target {parquet[0]} reads objects of the land job")
        avro = [table.name for table in self.tables if self.landing_of(table).format == "avro"]
        if parquet and avro:
            reason = f"{parquet[0]}: format: parquet: land table {avro[0]} as parquet or json"
            raise self._invalid("targets", None, reason)
        if len(parquet) < len(self.targets):
            return
        for table in self.tables:
            for field in ("partition_by", "history"):
                if field in table.model_fields_set:
                    reason = (
                        f"{table.name}: remove {field}: only Hudi tables have it, and every target has format: parquet"
                    )
                    raise self._invalid("tables", None, reason)

    def _require_suitable_transforms(self) -> None:
        required = {
            table.name: [*table.key, *table.partition_by, *self.landing_of(table).partition_by] for table in self.tables
        }
        for table in self.tables:
            if table.poll is None:
                continue
            required[table.name] += filter(None, (table.poll.timestamp, table.poll.incrementing))
            if table.poll.sql and (excluded := excluded_columns(self.transforms, table.name)):
                reason = (
                    f"{table.name}: exclude lists column {excluded[0]}, but {table.poll.sql} selects the columns; "
                    "remove it from the SELECT, and limit the transform to other tables"
                )
                raise self._invalid("transforms", None, reason)
        keys = {table.name: table.key for table in self.tables}
        if found := find_fault(self.transforms, required, keys):
            raise self._invalid("transforms", None, found)

    def _require_applicable_at_landing(self) -> None:
        for table in self.tables:
            given = [each for each in of_table(self.transforms, table.name) if each.at == "landing"]
            if given and self.landing_of(table).sink is not None:
                reason = (
                    f"{table.name}: {given[0].type}: use at: source, because the sink connector writes records as they "
                    "are in Kafka"
                )
                raise self._invalid("transforms", None, reason)

    def _require_log_fields(self, names: list[str]) -> None:
        captured = self.source.tables
        if set(names) != set(captured):
            raise self._invalid("tables", names, f"name the tables of source.tables, which are {', '.join(captured)}")
        for own in (HEARTBEAT_TABLE, f"{SIGNAL_TABLE}_{self.name}", NOTIFICATIONS):
            if own in names:
                raise self._invalid("tables", names, f"{own} is the pipeline's own table; remove it")
        for table in self.tables:
            if field := "poll" if table.poll else "topic" if table.topic else None:
                raise self._invalid("tables", names, f"{table.name}: remove {field}, or use source.kind query")

    def _require_query_fields(self) -> None:
        if lacking := [table.name for table in self.tables if table.poll is None]:
            raise self._invalid("tables", lacking, f"{lacking[0]}: add the field poll; source.kind query requires it")
        if twice := repeated(table.topic or table.name for table in self.tables):
            raise self._invalid("tables", twice, f"give each table a topic of its own: {', '.join(twice)}")
        if self.stream.format != "json":
            raise self._invalid("stream", self.stream.format, "use format json with source.kind query")
        if self.landing.sink is not None:
            raise self._invalid("landing", None, "remove sink: the land job lands polled rows")
        if self.mode == "continuous":
            raise self._invalid("mode", self.mode, "use triggered with source.kind query")
        if "retained_wal_limit_mb" in self.model_fields_set:
            reason = "not allowed with source.kind query: polling has no replication slot; remove it"
            raise self._invalid("retained_wal_limit_mb", None, reason)

    def _invalid(self, field: str, given: object, reason: str) -> ValueError:
        return field_error(type(self).__name__, field, given, reason)
