"""The field `source` of a pipeline's YAML, and the names of cdc-lake's own tables and topics for a captured source."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from cdc_lake.pipeline.spec.field_types import Count, Identifier, Identifiers, SqlFiles
from cdc_lake.yaml_model import YamlModel, field_error

HEARTBEAT_TABLE = "cdc_heartbeat"
SIGNAL_TABLE, NOTIFICATIONS = "cdc_signal", "cdc_notifications"
"""The prefix of the name of a pipeline's signal table, and the last part of the name of its notification topic."""


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
                raise field_error(title, foreign[0], None, f"only valid with kind: {kind}; remove it")
        return self
