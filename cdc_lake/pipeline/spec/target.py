"""The fields of a pipeline's YAML that describe its targets: format, copy-on-write or merge-on-read, deletes."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from cdc_lake.pipeline.spec.field_types import Identifier
from cdc_lake.yaml_model import YamlModel, field_error

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
    def _fields_of_format(self) -> Self:
        for field in ("table_type", "deletes"):
            if self.format == "parquet" and field in self.model_fields_set:
                reason = "not allowed with format: parquet, whose objects are never changed; remove it"
                raise field_error(type(self).__name__, field, None, reason)
        return self
