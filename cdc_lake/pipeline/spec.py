"""The fields of a pipeline's YAML, validated when the definitions load."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from pathlib import PurePath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.sinks.sink_names import Layout
from cdc_lake.jobs.adoption.listing import Sink
from cdc_lake.yaml_model import YamlModel, field_error

HEARTBEAT_TABLE = "cdc_heartbeat"
"""The table that a pipeline creates in the source's schema: no captured table may have its name."""
_PERIODS = {"hourly": "1h", "daily": "1d"}
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def _matching(pattern: str, advice: str) -> AfterValidator:
    """Reject a text that does not match the pattern; the error says what to write instead."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(advice)
        return text

    return AfterValidator(check)


def _unique(texts: list[str]) -> list[str]:
    if repeated := _repeated(texts):
        raise ValueError(f"name each once: {', '.join(repeated)} appears more than once")
    return texts


def _repeated(texts: Iterable[str]) -> list[str]:
    return sorted(text for text, count in Counter(texts).items() if count > 1)


Identifier = Annotated[
    str,
    _matching(
        r"[a-z_][a-z0-9_]{0,47}",
        "use lower-case letters, digits and '_', at most 48 of them, not starting with a digit",
    ),
]
Identifiers = Annotated[list[Identifier], AfterValidator(_unique)]
Duration = Annotated[
    str, _matching(r"[1-9]\d{0,5}[smhd]", "use a whole number up to 999999 and a unit: 30s, 5m, 12h or 7d")
]
SqlFile = Annotated[
    str,
    _matching(r"[a-z_][a-z0-9_]*\.sql", "name a .sql file beside the YAML, in lower-case letters, digits and '_'"),
]
SqlFiles = Annotated[list[SqlFile], AfterValidator(_unique)]
YamlFile = Annotated[
    str,
    _matching(r"[a-z_][a-z0-9_]*\.yaml", "name a .yaml file beside defs.yaml, in lower-case letters, digits and '_'"),
]
YamlFiles = Annotated[list[YamlFile], AfterValidator(_unique)]
Owner = Annotated[
    str, _matching(r"team:[A-Za-z0-9_-]+|[^@\s]+@[^@\s]+", "name a team as team:NAME, or an e-mail address")
]
Count = Annotated[int, Field(strict=True, ge=1)]


def seconds(duration: str) -> int:
    """Return a duration of the YAML (`5m`, `hourly`) in seconds."""
    duration = _PERIODS.get(duration, duration)
    return int(timedelta(**{_UNITS[duration[-1]]: int(duration[:-1])}).total_seconds())


class SourceSpec(YamlModel):
    """The PostgreSQL tables to capture, and their publication."""

    kind: Literal["outbox", "log"] = Field(
        description="outbox (a table that triggers fill) or log (the tables themselves)"
    )
    database: Identifier = Field(description="the database's name")
    schema_: Identifier = Field(alias="schema", description="the schema of the tables")
    tables: Identifiers = Field(min_length=1, description="the tables to capture, at least one")
    publication: Identifier = Field(description="the publication's name; created if it is missing")
    checks: SqlFiles = Field(default_factory=list, description="SELECTs on the source; each row they return is a fault")


class StreamSpec(YamlModel):
    """The Kafka topics: their prefix, the format of their records, and their partitions."""

    prefix: Identifier = Field(description="the first part of the topics' names")
    format: Literal["json"] = Field(default="json", description="json")
    partitions: Annotated[Count, Field(le=64)] = Field(default=1, description="partitions of a topic, 1 to 64")


class SinkSpec(YamlModel):
    """The S3 sink connector that writes a pipeline's raw objects instead of the land job."""

    layout: Layout = Field(description="lenses, lenses_by_field, confluent or aiven")
    prefix: Annotated[
        str,
        _matching(
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

    format: Literal["json"] = Field(default="json", description="json")
    flush_seconds: Count = Field(default=60, description="land waiting records after this many seconds")
    flush_records: Count = Field(default=50, description="land as soon as this many records are waiting")
    records_per_object: Count = Field(default=100_000, description="the largest number of records in one object")
    record_bytes: Annotated[Count, Field(le=64 * 2**20)] = Field(
        default=8 * 2**20, description="larger records become dead letters; in bytes, at most 64 MiB"
    )
    sink: SinkSpec | None = Field(default=None, description="a mapping with layout, prefix and envelope")


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


class TableSpec(YamlModel):
    """One lake table."""

    name: Identifier = Field(description="the table's name, as at the source")
    key: Identifiers = Field(min_length=1, description="the primary key's columns, at least one")
    ordering: Literal["lsn"] = Field(default="lsn", description="lsn")
    table_type: Literal["cow"] = Field(default="cow", description="cow")
    deletes: Literal["soft", "hard"] = Field(
        default="soft", description="soft (keep the tombstones) or hard (purge them after the replay window)"
    )
    partition_by: Identifiers = Field(
        default_factory=list,
        description="partition columns; leave empty unless the table is larger than tens of GB",
    )
    values: ValuesSpec = Field(default_factory=ValuesSpec, description="a mapping with infinity and nan")


def _off(given: object) -> object:
    """Return "off" for false: YAML 1.1 reads `off` as a boolean."""
    return "off" if given is False else given


class ChecksSpec(YamlModel):
    """How often the checks that read whole tables run; the other checks run with each materialisation."""

    verify_every: Annotated[
        str,
        BeforeValidator(_off),
        _matching(r"off|hourly|daily|[1-9]\d{0,5}[smhd]", "use off, hourly, daily, or a duration such as 30m or 6h"),
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


class PipelineSpec(YamlModel):
    """A whole pipeline: the `attributes` of its YAML."""

    name: Identifier = Field(description="the pipeline's name, which is the name of its folder")
    description: str = Field(default="", description="what the pipeline is for")
    owners: list[Owner] = Field(default_factory=lambda: ["team:data"], description="team:NAME or e-mail addresses")
    source: SourceSpec = Field(description="a mapping with kind, database, schema, tables, publication")
    stream: StreamSpec = Field(description="a mapping with prefix")
    landing: LandingSpec = Field(default_factory=LandingSpec, description="when and how raw objects are written")
    tables: list[TableSpec] = Field(min_length=1, description="a list with the name and key of each table")
    catalog: Identifier = Field(default="datalake", description="the Glue database")
    datasets: SqlFiles = Field(default_factory=list, description="SELECTs over the lake's tables; each becomes a view")
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
        captured = self.source.tables
        if repeated := _repeated(names):
            raise self._invalid("tables", names, f"name each table once: {', '.join(repeated)} appears more than once")
        if set(names) != set(captured):
            raise self._invalid("tables", names, f"name the tables of source.tables, which are {', '.join(captured)}")
        if HEARTBEAT_TABLE in names:
            raise self._invalid("tables", names, f"{HEARTBEAT_TABLE} is the pipeline's own table; leave it out")
        taken = {entry for name in names for entry in (name, f"{name}_current")}
        if clash := sorted(taken & {PurePath(file).stem for file in self.datasets}):
            raise self._invalid("datasets", clash, f"{clash[0]}.sql would replace a lake table or its view; rename it")
        return self

    def _invalid(self, field: str, given: object, reason: str) -> ValueError:
        return field_error(type(self).__name__, field, given, reason)
