"""The field `datasets` of a pipeline's YAML: views and refined tables."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from cdc_lake.pipeline.spec.field_types import Identifiers, SqlFile, unique
from cdc_lake.yaml_model import YamlModel, field_error


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
            raise field_error(type(self).__name__, "partition_by", None, "not allowed with table: false; remove it")
        return self


def _as_mapping(given: object) -> object:
    """Return the mapping of a dataset that is given as a file name, which is a view."""
    return {"sql": given, "table": False} if isinstance(given, str) else given


def _unique_files(datasets: list[DatasetSpec]) -> list[DatasetSpec]:
    unique([dataset.sql for dataset in datasets])
    return datasets


Datasets = Annotated[
    list[Annotated[DatasetSpec, BeforeValidator(_as_mapping, json_schema_input_type=SqlFile | DatasetSpec)]],
    AfterValidator(_unique_files),
]
