"""What a pipeline's YAML may say (design, section 2), validated when the definitions load."""

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
"""The table that a pipeline adds to the source's schema: no other table may have its name."""
_PERIODS = {"hourly": "1h", "daily": "1d"}
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def _matching(pattern: str, advice: str) -> AfterValidator:
    """A text of this form; another one is refused with what to write instead."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(advice)
        return text

    return AfterValidator(check)


def _unique(texts: list[str]) -> list[str]:
    if twice := _repeated(texts):
        raise ValueError(f"name each once: {', '.join(twice)} stands here more than once")
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
    """A duration of the YAML (`5m`, `hourly`) in seconds."""
    duration = _PERIODS.get(duration, duration)
    return int(timedelta(**{_UNITS[duration[-1]]: int(duration[:-1])}).total_seconds())


class SourceSpec(YamlModel):
    """The PostgreSQL side: what is captured and by which publication."""

    kind: Literal["outbox", "log"] = Field(description="outbox (a table that triggers fill) or log (tables themselves)")
    database: Identifier = Field(description="the database's name")
    schema_: Identifier = Field(alias="schema", description="the schema of the tables")
    tables: Identifiers = Field(min_length=1, description="the tables to capture, at least one")
    publication: Identifier = Field(description="the publication's name; made if it is missing")
    checks: SqlFiles = Field(default_factory=list, description="SELECTs whose every row is a fault, on the source")


class StreamSpec(YamlModel):
    """The Kafka side: the topics' prefix and the format of their records."""

    prefix: Identifier = Field(description="what the topics' names begin with")
    format: Literal["json"] = Field(default="json", description="json")
    partitions: Annotated[Count, Field(le=64)] = Field(default=1, description="partitions of a topic, 1 to 64")


class SinkSpec(YamlModel):
    """The S3 sink connector that writes a pipeline's raw objects in the land job's place."""

    layout: Layout = Field(description="lenses, lenses_by_field, confluent or aiven")
    prefix: Annotated[
        str,
        _matching(
            r"raw/[A-Za-z0-9._/-]+",
            "use the connector's own prefix, below raw/, of letters, digits, '.', '_', '-' and '/'",
        ),
    ] = Field(default="", description="the connector's prefix; raw/<pipeline>/_sink/ if it is left out")
    envelope: bool = Field(default=False, strict=True, description="true where each line has the record's offset, too")

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
    flush_seconds: Count = Field(default=60, description="the longest that a record waits for the sensor, in seconds")
    flush_records: Count = Field(default=50, description="so many records are not waited with")
    records_per_object: Count = Field(default=100_000, description="the most records of one object")
    record_bytes: Annotated[Count, Field(le=64 * 2**20)] = Field(
        default=8 * 2**20, description="a larger record goes to the dead letters; in bytes, at most 64 MiB"
    )
    sink: SinkSpec | None = Field(default=None, description="a mapping with layout, prefix and envelope")


def _null(given: object) -> object:
    """YAML's own null, which pydantic would take for a field that is left out."""
    return "null" if given is None else given


class ValuesSpec(YamlModel):
    """What becomes of values that PostgreSQL has and the lake's types have not."""

    infinity: Annotated[Literal["dead_letter", "null", "max"], BeforeValidator(_null)] = Field(
        default="dead_letter",
        description="of a date or timestamp: dead_letter, null, or max (9999-12-31; 0001-01-01 for -infinity)",
    )
    nan: Annotated[Literal["dead_letter", "null"], BeforeValidator(_null)] = Field(
        default="dead_letter", description="of a numeric column with a precision: dead_letter or null"
    )


class TableSpec(YamlModel):
    """One lake table."""

    name: Identifier = Field(description="the table's name, as at the source")
    key: Identifiers = Field(min_length=1, description="the primary key's columns, at least one")
    ordering: Literal["lsn"] = Field(default="lsn", description="lsn")
    table_type: Literal["cow"] = Field(default="cow", description="cow")
    deletes: Literal["soft", "hard"] = Field(
        default="soft", description="soft (a tombstone stays) or hard (it is purged after the replay window)"
    )
    partition_by: Identifiers = Field(default_factory=list, description="none is right; docs/how-to tells the cost")
    values: ValuesSpec = Field(default_factory=ValuesSpec, description="a mapping with infinity and nan")


def _off(given: object) -> object:
    """YAML's `off`, which is a boolean there."""
    return "off" if given is False else given


class ChecksSpec(YamlModel):
    """When the checks run that read whole tables; the others run with each materialisation."""

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
    """How old the newest heartbeat that passed a stage may be, and how far apart the runs of a stage."""

    topic: Duration = Field(default="2m", description="a duration such as 2m")
    raw: Duration = Field(default="5m", description="a duration such as 5m")
    lake: Duration = Field(default="5m", description="a duration such as 5m")
    runs: Annotated[Duration, AfterValidator(_a_minute)] = Field(
        default="1d", description="the longest that a stage may go without a run, such as 1d; at least 1m"
    )


class PipelineSpec(YamlModel):
    """A whole pipeline, as its YAML's `attributes` say."""

    name: Identifier = Field(description="the pipeline's name, which is that of its folder")
    description: str = Field(default="", description="what it is, for people")
    owners: list[Owner] = Field(default_factory=lambda: ["team:data"], description="team:NAME or e-mail addresses")
    source: SourceSpec = Field(description="a mapping with kind, database, schema, tables, publication")
    stream: StreamSpec = Field(description="a mapping with prefix")
    landing: LandingSpec = Field(default_factory=LandingSpec, description="when and how raw objects are written")
    tables: list[TableSpec] = Field(min_length=1, description="a list with name and key of each table")
    catalog: Identifier = Field(default="datalake", description="the Glue database")
    datasets: SqlFiles = Field(default_factory=list, description="SELECTs over the lake's tables, each a view")
    dashboards: YamlFiles = Field(default_factory=list, description="pages over the datasets")
    checks: ChecksSpec = Field(default_factory=ChecksSpec, description="a mapping with verify_every")
    freshness: FreshnessSpec = Field(default_factory=FreshnessSpec, description="durations by stage")
    replay_window: Duration = Field(default="7d", description="how long a topic keeps its records, such as 7d")
    dead_letter_limit: Count = Field(
        default=1000, description="more unreadable records of one run than this stop it instead of being set aside"
    )
    retained_wal_limit_mb: Count = Field(default=1024, description="the WAL that the slot may hold back, in MB")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [table.name for table in self.tables]
        captured = self.source.tables
        if twice := _repeated(names):
            raise self._refused("tables", names, f"name each table once: {', '.join(twice)} stands here more than once")
        if set(names) != set(captured):
            raise self._refused("tables", names, f"name the tables of source.tables, which are {', '.join(captured)}")
        if HEARTBEAT_TABLE in names:
            raise self._refused("tables", names, f"{HEARTBEAT_TABLE} is the pipeline's own table; leave it out")
        taken = {entry for name in names for entry in (name, f"{name}_current")}
        if clash := sorted(taken & {PurePath(file).stem for file in self.datasets}):
            raise self._refused("datasets", clash, f"{clash[0]}.sql would take the lake table's place; rename it")
        return self

    def _refused(self, field: str, given: object, reason: str) -> ValueError:
        return field_error(type(self).__name__, field, given, reason)
