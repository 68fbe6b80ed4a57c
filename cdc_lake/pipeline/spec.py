"""What a pipeline's YAML may say (design, section 2), validated when the definitions load.

Here: fields, defaults and what is allowed. Not here: names that follow from them (flow.py).
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Literal

import dagster as dg
from pydantic import AfterValidator, ConfigDict, Field, model_validator

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def _identifier(text: str) -> str:
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,47}", text):
        raise ValueError("use lower-case letters, digits and '_', at most 48 of them, not starting with a digit")
    return text


def _duration(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d*[smhd]", text):
        raise ValueError("use a whole number and a unit: 30s, 5m, 12h or 7d")
    return text


def _sql_file(text: str) -> str:
    if not re.fullmatch(r"[a-z_][a-z0-9_]*\.sql", text):
        raise ValueError("name a .sql file beside the YAML, in lower-case letters, digits and '_'")
    return text


def _yaml_file(text: str) -> str:
    if not re.fullmatch(r"[a-z_][a-z0-9_]*\.yaml", text):
        raise ValueError("name a .yaml file beside defs.yaml, in lower-case letters, digits and '_'")
    return text


Identifier = Annotated[str, AfterValidator(_identifier)]
Duration = Annotated[str, AfterValidator(_duration)]
SqlFile = Annotated[str, AfterValidator(_sql_file)]
YamlFile = Annotated[str, AfterValidator(_yaml_file)]


def seconds(duration: str) -> int:
    """A duration of the YAML (`5m`) in seconds."""
    return int(timedelta(**{_UNITS[duration[-1]]: int(duration[:-1])}).total_seconds())


class _Part(dg.Model, dg.Resolvable):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceSpec(_Part):
    """The PostgreSQL side: what is captured and by which publication."""

    kind: Literal["outbox", "log"] = Field(description="outbox: a table that triggers fill; log: the tables themselves")
    database: Identifier
    schema_: Identifier = Field(alias="schema")
    tables: list[Identifier] = Field(min_length=1)
    publication: Identifier
    checks: list[SqlFile] = Field(default_factory=list, description="SELECTs whose every row is a fault, on the source")

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class StreamSpec(_Part):
    """The Kafka side: the topics' prefix and the format of their records."""

    prefix: Identifier
    format: Literal["json"] = "json"
    partitions: int = Field(default=1, ge=1, le=64)


class LandingSpec(_Part):
    """When and how raw objects are written."""

    format: Literal["json"] = "json"
    flush_seconds: int = Field(default=60, ge=1)
    flush_records: int = Field(default=50, ge=1)
    records_per_object: int = Field(default=100_000, ge=1)


class TableSpec(_Part):
    """One lake table."""

    name: Identifier
    key: list[Identifier] = Field(min_length=1)
    ordering: Literal["lsn"] = "lsn"
    table_type: Literal["cow"] = "cow"
    deletes: Literal["soft"] = "soft"
    partition_by: list[Identifier] = Field(
        default_factory=list, description="none is right; docs/how-to tells the cost"
    )


class FreshnessSpec(_Part):
    """How old the newest heartbeat that passed a stage may be."""

    topic: Duration = "2m"
    raw: Duration = "5m"
    lake: Duration = "5m"


class PipelineSpec(_Part):
    """A whole pipeline, as its YAML's `attributes` say."""

    name: Identifier
    description: str = ""
    owners: list[str] = Field(default_factory=lambda: ["team:data"])
    source: SourceSpec
    stream: StreamSpec
    landing: LandingSpec = Field(default_factory=LandingSpec)
    tables: list[TableSpec] = Field(min_length=1)
    catalog: Identifier = Field(default="datalake", description="the Glue database")
    datasets: list[SqlFile] = Field(default_factory=list)
    dashboards: list[YamlFile] = Field(default_factory=list)
    freshness: FreshnessSpec = Field(default_factory=FreshnessSpec)
    replay_window: Duration = "7d"
    retained_wal_limit_mb: int = Field(default=1024, ge=1)

    @model_validator(mode="after")
    def _tables_captured(self) -> PipelineSpec:
        names = [table.name for table in self.tables]
        if sorted(names) != sorted(self.source.tables):
            raise ValueError(f"tables {sorted(names)} must be the source's tables {sorted(self.source.tables)}")
        return self
