"""The fields of a pipeline's YAML that describe its tables."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from cdc_lake.pipeline.spec.field_types import (
    ColumnName,
    Duration,
    Identifier,
    Identifiers,
    SqlFile,
    TimeZone,
    TopicName,
    seconds,
    unique,
    with_verb,
)
from cdc_lake.pipeline.spec.landing import LandingFields
from cdc_lake.yaml_model import YamlModel, field_error


def _null(given: object) -> object:
    """Return "null" for YAML's null, which pydantic would treat as a field that is left out."""
    return "null" if given is None else given


class ValuesSpec(YamlModel):
    """What is stored for values that PostgreSQL's types have and the lake's types do not: infinity and NaN."""

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
        description="timestamp (a trigger sets the column at every insert and update), incrementing (rows are only "
        "inserted) or timestamp_and_incrementing (the timestamp is NULL until the first update)",
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
                raise field_error(type(self).__name__, field, None, f"not allowed with mode {self.mode}; remove it")
        if self.time_zone and not self.timestamp:
            raise field_error(type(self).__name__, "time_zone", None, "not allowed without timestamp; remove it")
        return self


class TableSpec(YamlModel):
    """One captured table; each target has a lake table for it."""

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
    landing: LandingFields | None = Field(
        default=None,
        description="a mapping with format, compression, flush_seconds, flush_records and partition_by, which replace "
        "those of the pipeline's landing",
    )
    topic: TopicName = Field(
        default="", description="the last part of the topic's name, if not the table's; with source.kind query"
    )
    poll: PollSpec | None = Field(
        default=None,
        description="a mapping with mode, timestamp, incrementing, time_zone, table and sql; with source.kind query",
    )

    @model_validator(mode="after")
    def _required_columns_captured(self) -> Self:
        polled = [] if self.poll is None else [self.poll.timestamp, self.poll.incrementing]
        folders = [] if self.landing is None else self.landing.partition_by
        needed = {"key": self.key, "partition_by": self.partition_by, "landing.partition_by": folders, "poll": polled}
        for field, required in needed.items():
            if named := [name for name in self.exclude_columns if name in required]:
                columns = ", ".join(named)
                reason = f"{with_verb(named)} in {field}; remove {columns} from exclude_columns or from {field}"
                raise field_error(type(self).__name__, "exclude_columns", named, reason)
        if self.exclude_columns and self.poll is not None and self.poll.sql:
            reason = f"not allowed: {self.poll.sql} selects the columns; remove it"
            raise field_error(type(self).__name__, "exclude_columns", self.exclude_columns, reason)
        return self
