"""`dg scaffold defs cdc_lake.CdcPipeline NAME`: a complete, valid defs.yaml, whose names come from the folder."""

from __future__ import annotations

from typing import Any

import dagster as dg
import yaml
from pydantic import ValidationError

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.avro_pipelines import DEFS_FILE
from cdc_lake.pipeline.spec.pipeline import PipelineSpec
from cdc_lake.yaml_model import error_lines

_YAML = """\
type: {type}

# docs/reference/pipeline-yaml.md lists every field; docs/how-to/add-a-table.md says what the source needs.
attributes:
  name: {name}  # the folder's name
  source:
    database: {name}
    schema: public
    tables: [{name}]
    publication: {name}_publication
  stream: {{ prefix: {name} }}
  tables:
    - name: {name}
      key: [id]  # the primary key's columns
"""


class PipelineScaffolder(dg.Scaffolder):
    """Writes the YAML of a pipeline with one table."""

    def scaffold(self, request: dg.ScaffoldRequest[Any]) -> None:
        """Write defs.yaml. Raises ContractError if the folder's name is not a pipeline name, or if the file exists."""
        name, file = request.target_path.name, request.target_path / DEFS_FILE
        if request.scaffold_format != "yaml":
            raise ContractError(
                f"Cannot scaffold pipeline {name} as {request.scaffold_format}: a pipeline is YAML. Omit --format."
            )
        if request.append or file.exists():
            raise ContractError(f"Cannot scaffold pipeline {name}: {file} exists. Choose another folder.")
        text = _YAML.format(type=request.type_name, name=name)
        try:
            PipelineSpec.model_validate(yaml.safe_load(text)["attributes"])
        except ValidationError as error:
            raise ContractError(
                f"Cannot scaffold pipeline {name!r}: {next(error_lines(error))}. Choose another folder's name."
            ) from None
        file.write_text(text, encoding="utf-8")
