"""The fields of a pipeline's YAML, validated when the definitions load."""

from __future__ import annotations

from datetime import timedelta
from pathlib import PurePath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.parquet_file import Compression
from cdc_lake.contract.sinks.sink_names import Layout
from cdc_lake.jobs.adoption.listing import Sink
from cdc_lake.jobs.landing.raw_formats import LandingFormat, StreamFormat
from cdc_lake.pipeline import transform_spec
from cdc_lake.pipeline.field_types import ColumnName, Identifier, Identifiers, matching, repeated, unique
from cdc_lake.yaml_model import YamlModel, field_error

HEARTBEAT_TABLE = "cdc_heartbeat"
SIGNAL_TABLE, NOTIFICATIONS = "cdc_signal", "cdc_notifications"
"""The prefix of the name of a pipeline's signal table, and the last part of the name of its notification topic."""
_PERIODS = {"hourly": "1h", "daily": "1d"}
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


Duration = Annotated[
    str, matching(r"[1-9]\d{0,5}[smhd]", "use a whole number up to 999999 and a unit: 30s, 5m, 12h or 7d")
]
SqlFile = Annotated[
    str,
    matching(r"[a-z_][a-z0-9_]*\.sql", "name a .sql file of the YAML's folder, in lower-case letters, digits and '_'"),
]
SqlFiles = Annotated[list[SqlFile], AfterValidator(unique)]
YamlFile = Annotated[
    str,
    matching(
        r"[a-z_][a-z0-9_]*\.yaml", "name a .yaml file of the YAML's folder, in lower-case letters, digits and '_'"
    ),
]
YamlFiles = Annotated[list[YamlFile], AfterValidator(unique)]
TopicName = Annotated[
    str,
    matching(r"[A-Za-z0-9._-]{1,100}", "use letters, digits, '.', '_' and '-', at most 100 of them"),
]
TimeZone = Annotated[
    str, matching(r"[A-Za-z0-9_+/-]{1,63}", "name a time zone of PostgreSQL, such as UTC or Etc/GMT-1")
]
Owner = Annotated[
    str, matching(r"team:[A-Za-z0-9_-]+|[^@\s]+@[^@\s]+", "name a team as team:NAME, or an e-mail address")
]
Count = Annotated[int, Field(strict=True, ge=1)]


def seconds(duration: str) -> int:
    """Return a duration of the YAML (`5m`, `hourly`) in seconds."""
    duration = _PERIODS.get(duration, duration)
    return int(timedelta(**{_UNITS[duration[-1]]: int(duration[:-1])}).total_seconds())


class SourceSpec(YamlModel):
    """The PostgreSQL tables to capture, and how: from the log through a publication, or by polling queries."""

    kind: Literal["log", "query"] = Field(
        default="log", description="log (Debezium streams every change) or query (polls the rows that changed)"
    )
    database: Identifier = Field(description="the database's name")
    schema_: Identifier = Field(alias="schema", description="the schema of the tables")
    tables: Identifiers = Field(
        default_factory=list, min_length=1, description="the tables to capture, at least one; with kind log"
    )
    publication: Identifier = Field(
        default="", description="the publication's name; created if it is missing; with kind log"
    )
    poll_seconds: Count = Field(default=5, description="the interval between two polls; with kind query")
    checks: SqlFiles = Field(default_factory=list, description="SELECTs on the source that must return no rows")

    @model_validator(mode="after")
    def _fields_of_kind(self) -> Self:
        title, given = type(self).__name__, self.model_fields_set
        if self.kind == "log":
            if "tables" not in given:
                raise field_error(title, "tables", None, "missing; give the tables to capture, at least one")
            if "publication" not in given:
                raise field_error(title, "publication", None, "missing; give the publication's name")
        for kind, fields in (("log", ("tables", "publication")), ("query", ("poll_seconds",))):
            if kind != self.kind and (foreign := [name for name in fields if name in given]):
                raise field_error(title, foreign[0], None, f"leave it out: it belongs to kind {kind}")
        return self


class StreamSpec(YamlModel):
    """The Kafka topics: the prefix of their names, their partitions, and the format of their records."""

    prefix: Identifier = Field(description="the first part of the topics' names")
    partitions: Annotated[Count, Field(le=64)] = Field(default=1, description="partitions of a topic, 1 to 64")
    format: StreamFormat = Field(default="json", description="json, or avro with the schemas in a registry")
    registry: Literal["apicurio", "confluent"] | None = Field(
        default=None, description="apicurio or confluent: whose converter writes Avro; the deployment has its URL"
    )

    @model_validator(mode="after")
    def _registry_for_avro(self) -> Self:
        if self.format == "avro" and self.registry is None:
            raise field_error(type(self).__name__, "registry", None, "name it, apicurio or confluent, for format avro")
        if self.format == "json" and self.registry is not None:
            raise field_error(type(self).__name__, "registry", self.registry, "leave it out, or use format: avro")
        return self


class SinkSpec(YamlModel):
    """The S3 sink connector that writes a pipeline's raw objects instead of the land job."""

    layout: Layout = Field(description="lenses, lenses_by_field, confluent or aiven")
    prefix: Annotated[
        str,
        matching(
            r"raw/[A-Za-z0-9._/-]+",
            "use the connector's own prefix, below raw/, of letters, digits, '.', '_', '-' and '/'",
        ),
    ] = Field(default="", description="the connector's prefix; raw/<pipeline>/_sink/ if it is left out")
    envelope: bool = Field(
        default=False, strict=True, description="true if each line also contains the record's offset"
    )

    @model_validator(mode="after")
    def _readable(self) -> Self:
        try:
            Sink(self.layout, self.prefix, self.envelope)
        except ContractError as error:
            raise field_error(type(self).__name__, "envelope", self.envelope, error.user_message) from None
        return self


class LandingSpec(YamlModel):
    """When and how raw objects are written."""

    format: LandingFormat = Field(
        default="json", description="json (lines), avro (object container files) or parquet (typed rows)"
    )
    compression: Compression | None = Field(
        default=None, description="gzip, snappy or zstd, with format: parquet; gzip if it is left out"
    )
    flush_seconds: Count = Field(default=60, description="land waiting records after this many seconds")
    flush_records: Count = Field(default=50, description="land as soon as this many records are waiting")
    records_per_object: Count = Field(default=100_000, description="the largest number of records in one object")
    record_bytes: Annotated[Count, Field(le=64 * 2**20)] = Field(
        default=8 * 2**20, description="larger records become dead letters; in bytes, at most 64 MiB"
    )
    sink: SinkSpec | None = Field(default=None, description="a mapping with layout, prefix and envelope")

    @model_validator(mode="before")
    @classmethod
    def _compressed(cls, given: object) -> object:
        if isinstance(given, dict) and given.get("format") == "parquet":
            return {**given, "compression": given.get("compression") or "gzip"}
        return given

    @model_validator(mode="after")
    def _landed(self) -> Self:
        if self.compression is not None and self.format != "parquet":
            reason = "leave it out, or use format: parquet"
            raise field_error(type(self).__name__, "compression", self.compression, reason)
        if self.sink is not None and self.format == "parquet":
            reason = "land Parquet with the land job: leave the sink out"
            raise field_error(type(self).__name__, "sink", self.sink.layout, reason)
        return self


def _null(given: object) -> object:
    """Return "null" for YAML's null, which pydantic would treat as a field that is left out."""
    return "null" if given is None else given


class ValuesSpec(YamlModel):
    """How values are stored that PostgreSQL's types have and the lake's types do not."""

    infinity: Annotated[Literal["dead_letter", "null", "max"], BeforeValidator(_null)] = Field(
        default="dead_letter",
        description="an infinite date or timestamp becomes dead_letter, null, or max (9999-12-31; 0001-01-01 for "
        "-infinity)",
    )
    nan: Annotated[Literal["dead_letter", "null"], BeforeValidator(_null)] = Field(
        default="dead_letter", description="NaN in a numeric column with a precision becomes dead_letter or null"
    )


def _hours(duration: str) -> str:
    if seconds(duration) % 3600:
        raise ValueError("use whole hours: 1h, 12h or 7d")
    return duration


class PollSpec(YamlModel):
    """How a table's changed rows are found: by columns that a trigger or a sequence maintains."""

    mode: Literal["timestamp", "incrementing", "timestamp_and_incrementing"] = Field(
        default="timestamp",
        description="timestamp (a trigger sets it at every insert and update), incrementing (rows are only inserted) "
        "or timestamp_and_incrementing (the timestamp is NULL until the first update)",
    )
    timestamp: Identifier = Field(default="", description="the column with the time of the row's last change")
    incrementing: Identifier = Field(default="", description="the column that a sequence fills")
    time_zone: TimeZone = Field(
        default="", description="the TimeZone of the sessions that write a timestamp without time zone, such as UTC"
    )
    table: Identifier = Field(default="", description="the source table; if left out, the one of the entry's name")
    sql: SqlFile = Field(default="", description="a SELECT to poll instead of the table's own rows")

    @model_validator(mode="after")
    def _columns_of_mode(self) -> Self:
        for field in ("timestamp", "incrementing"):
            column, used = getattr(self, field), field in self.mode.split("_and_")
            if used and not column:
                raise field_error(type(self).__name__, field, None, f"missing; name the column for mode {self.mode}")
            if column and not used:
                raise field_error(type(self).__name__, field, column, f"leave it out with mode {self.mode}")
        if self.time_zone and not self.timestamp:
            raise field_error(type(self).__name__, "time_zone", self.time_zone, "leave it out without timestamp")
        return self


class TableSpec(YamlModel):
    """One lake table."""

    name: Identifier = Field(description="the table's name; with source.kind log, as at the source")
    key: Identifiers = Field(min_length=1, description="the primary key's columns, at least one")
    partition_by: Identifiers = Field(
        default_factory=list,
        description="partition columns; leave empty unless the table is larger than tens of GB",
    )
    history: Annotated[Duration, AfterValidator(_hours)] = Field(
        default="1h", description="how long earlier states of the table can be read, in whole hours, such as 1h or 7d"
    )
    values: ValuesSpec = Field(default_factory=ValuesSpec, description="a mapping with infinity and nan")
    exclude_columns: Annotated[list[ColumnName], AfterValidator(unique)] = Field(
        default_factory=list, description="columns that are not captured, as named at the source"
    )
    topic: TopicName = Field(
        default="", description="the last part of the topic's name, if not the table's; with source.kind query"
    )
    poll: PollSpec | None = Field(
        default=None, description="a mapping with mode, timestamp, incrementing, table and sql; with source.kind query"
    )

    @model_validator(mode="after")
    def _required_columns_captured(self) -> Self:
        polled = [] if self.poll is None else [self.poll.timestamp, self.poll.incrementing]
        for field, required in (("key", self.key), ("partition_by", self.partition_by), ("poll", polled)):
            if named := [name for name in self.exclude_columns if name in required]:
                reason = f"{', '.join(named)} is in {field}, and must be captured; remove it from one of the lists"
                raise field_error(type(self).__name__, "exclude_columns", named, reason)
        if self.exclude_columns and self.poll is not None and self.poll.sql:
            reason = f"leave it out: {self.poll.sql} selects the columns"
            raise field_error(type(self).__name__, "exclude_columns", self.exclude_columns, reason)
        return self


DEFAULT_TARGET = "lake"
"""The target whose name is not part of the names of its lake tables and assets."""


class TargetSpec(YamlModel):
    """One set of lake tables, fed by the pipeline's topics: a table for each table of the pipeline."""

    name: Identifier = Field(description="the target's name, such as lake")
    database: Identifier = Field(description="the Glue database")
    format: Literal["hudi", "parquet"] = Field(
        default="hudi",
        description="hudi (tables with one row for each key) or parquet (the landed objects and a view of latest rows)",
    )
    table_type: Literal["cow", "mor"] = Field(
        default="cow", description="cow (copy-on-write: fast to read) or mor (merge-on-read: fast to write)"
    )
    deletes: Literal["soft", "nullify", "hard"] = Field(
        default="soft",
        description="soft (a deleted row keeps its last values), nullify (it keeps its key and partition) or hard (it "
        "is purged after the replay window)",
    )

    @model_validator(mode="after")
    def _of_format(self) -> Self:
        for field in ("table_type", "deletes"):
            if self.format == "parquet" and field in self.model_fields_set:
                reason = "leave it out for format: parquet, whose objects are never changed"
                raise field_error(type(self).__name__, field, getattr(self, field), reason)
        return self


def _off(given: object) -> object:
    """Return "off" for false: YAML 1.1 reads `off` as a boolean."""
    return "off" if given is False else given


class ChecksSpec(YamlModel):
    """How often the checks that read whole tables run; the other checks run with each materialisation."""

    verify_every: Annotated[
        str,
        BeforeValidator(_off),
        matching(r"off|hourly|daily|[1-9]\d{0,5}[smhd]", "use off, hourly, daily, or a duration such as 30m or 6h"),
    ] = Field(default="6h", description="off, hourly, daily or a duration such as 6h")


def _a_minute(duration: str) -> str:
    if seconds(duration) < 60:
        raise ValueError("use at least 1m")
    return duration


class FreshnessSpec(YamlModel):
    """The maximum age of the newest heartbeat at each stage, and the maximum time between two runs of a stage."""

    topic: Duration = Field(default="2m", description="a duration such as 2m")
    raw: Duration = Field(default="5m", description="a duration such as 5m")
    lake: Duration = Field(default="5m", description="a duration such as 5m")
    runs: Annotated[Duration, AfterValidator(_a_minute)] = Field(
        default="1d", description="the maximum time between two runs of a stage, such as 1d; at least 1m"
    )


class DatasetSpec(YamlModel):
    """One dataset: a view, or a refined table, whose builds are Parquet files behind a view."""

    sql: SqlFile = Field(description="the .sql file with the SELECT")
    table: bool = Field(default=True, strict=True, description="true: a refined table; false: a view")
    partition_by: Identifiers = Field(default_factory=list, description="the refined table's partition columns")

    @property
    def name(self) -> str:
        """The dataset's name."""
        return PurePath(self.sql).stem

    @model_validator(mode="after")
    def _partitioned(self) -> Self:
        if self.partition_by and not self.table:
            raise field_error(type(self).__name__, "partition_by", self.partition_by, "leave it out for table: false")
        return self


def _view(given: object) -> object:
    """Return the mapping of a dataset that is given as a file name, which is a view."""
    return {"sql": given, "table": False} if isinstance(given, str) else given


def _once(datasets: list[DatasetSpec]) -> list[DatasetSpec]:
    unique([dataset.sql for dataset in datasets])
    return datasets


Datasets = Annotated[
    list[Annotated[DatasetSpec, BeforeValidator(_view, json_schema_input_type=SqlFile | DatasetSpec)]],
    AfterValidator(_once),
]

Mode = Literal["triggered", "continuous"]


class PipelineSpec(YamlModel):
    """A whole pipeline: the `attributes` of its YAML."""

    name: Identifier = Field(description="the pipeline's name, which is the name of its folder")
    description: str = Field(default="", description="the purpose of the pipeline")
    owners: list[Owner] = Field(default_factory=lambda: ["team:data"], description="team:NAME or e-mail addresses")
    source: SourceSpec = Field(description="a mapping with database, schema, tables, publication")
    stream: StreamSpec = Field(description="a mapping with prefix")
    landing: LandingSpec = Field(default_factory=LandingSpec, description="when and how raw objects are written")
    tables: list[TableSpec] = Field(min_length=1, description="a list with the name and key of each table")
    targets: list[TargetSpec] = Field(
        default_factory=lambda: [TargetSpec(name=DEFAULT_TARGET, database="datalake")],
        min_length=1,
        description="a list with the name and Glue database of each set of lake tables",
    )
    transforms: list[transform_spec.Transform] = Field(
        default_factory=list,
        description="a list of changes to captured columns: hash, MaskField, InsertField, ReplaceField",
    )
    mode: Mode = Field(
        default="triggered",
        description="triggered (a run for each batch) or continuous (one run lands and applies until it is terminated)",
    )
    datasets: Datasets = Field(
        default_factory=list,
        description="SELECTs over the lake's tables: a file name (a view) or a mapping with sql and partition_by (a "
        "refined table)",
    )
    dashboards: YamlFiles = Field(default_factory=list, description="dashboards over the datasets")
    checks: ChecksSpec = Field(default_factory=ChecksSpec, description="a mapping with verify_every")
    freshness: FreshnessSpec = Field(default_factory=FreshnessSpec, description="a duration for each stage")
    replay_window: Duration = Field(default="7d", description="how long a topic keeps its records, such as 7d")
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
            raise self._invalid("tables", names, f"name each table once: {', '.join(twice)} appears more than once")
        if self.source.kind == "log":
            self._require_log_fields(names)
        else:
            self._require_query_fields()
        for field in ("name", "database"):
            if twice := repeated(getattr(target, field) for target in self.targets):
                raise self._invalid("targets", twice, f"give each target a {field} of its own")
        if self.landing.format == "avro" and self.stream.format != "avro":
            raise self._invalid("landing", "format: avro", "use it with stream.format avro, whose schemas it stores")
        if self.landing.sink is not None and self.stream.format == "avro":
            raise self._invalid("landing", "sink", "land Avro with the land job: leave the sink out")
        self._require_landed_parquet()
        self._require_suitable_transforms()
        taken = {
            f"{name}{suffix}"
            for name in names
            for suffix in ("", "_current", "_ro", "_ro_current", "_rt", "_raw", "_latest")
        }
        if clash := sorted(taken & {dataset.name for dataset in self.datasets}):
            raise self._invalid("datasets", clash, f"{clash[0]}.sql would replace a lake table or its view; rename it")
        return self

    def _require_landed_parquet(self) -> None:
        """Raise if a Parquet target has no landed Parquet, or if Hudi-only fields are set without a Hudi target."""
        parquet = [target.name for target in self.targets if target.format == "parquet"]
        if parquet and self.landing.format != "parquet":
            raise self._invalid("targets", f"{parquet[0]}: format: parquet", "use it with landing.format parquet")
        if len(parquet) < len(self.targets):
            return
        for table in self.tables:
            for field in ("partition_by", "history"):
                if field in table.model_fields_set:
                    reason = f"leave {field} out: it is for Hudi tables, and every target has format: parquet"
                    raise self._invalid("tables", f"{table.name}: {field}", reason)

    def _require_suitable_transforms(self) -> None:
        required = {table.name: [*table.key, *table.partition_by] for table in self.tables}
        for table in self.tables:
            if table.poll is None:
                continue
            required[table.name] += filter(None, (table.poll.timestamp, table.poll.incrementing))
            kinds = {each.type for each in transform_spec.of_table(self.transforms, table.name)}
            if "hash" in kinds:
                reason = "hash needs source.kind log; mask the columns or exclude them"
                raise self._invalid("transforms", None, f"{table.name}: {reason}")
            if table.poll.sql and kinds:
                reason = f"its SELECT decides the columns; change {table.poll.sql}, and name the tables of transforms"
                raise self._invalid("transforms", None, f"{table.name}: {reason}")
        if fault := transform_spec.fault(self.transforms, required):
            raise self._invalid("transforms", None, fault)

    def _require_log_fields(self, names: list[str]) -> None:
        captured = self.source.tables
        if set(names) != set(captured):
            raise self._invalid("tables", names, f"name the tables of source.tables, which are {', '.join(captured)}")
        for own in (HEARTBEAT_TABLE, f"{SIGNAL_TABLE}_{self.name}", NOTIFICATIONS):
            if own in names:
                raise self._invalid("tables", names, f"{own} is the pipeline's own table; leave it out")
        for table in self.tables:
            if field := "poll" if table.poll else "topic" if table.topic else None:
                raise self._invalid("tables", names, f"{table.name}: leave {field} out, or use source.kind query")

    def _require_query_fields(self) -> None:
        if lacking := [table.name for table in self.tables if table.poll is None]:
            raise self._invalid("tables", lacking, f"{lacking[0]}: give poll, which source.kind query needs")
        if twice := repeated(table.topic or table.name for table in self.tables):
            raise self._invalid("tables", twice, f"give each table a topic of its own: {', '.join(twice)}")
        if self.stream.format != "json":
            raise self._invalid("stream", "format: avro", "use format json with source.kind query")
        if self.landing.sink is not None:
            raise self._invalid("landing", "sink", "land polled rows with the land job: leave the sink out")
        if self.mode == "continuous":
            raise self._invalid("mode", self.mode, "use triggered with source.kind query")
        if "retained_wal_limit_mb" in self.model_fields_set:
            limit = self.retained_wal_limit_mb
            raise self._invalid("retained_wal_limit_mb", limit, "leave it out: polling has no replication slot")

    def _invalid(self, field: str, given: object, reason: str) -> ValueError:
        return field_error(type(self).__name__, field, given, reason)
