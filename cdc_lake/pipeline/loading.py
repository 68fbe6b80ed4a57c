"""Load pipelines by name, for the command line and tests, from the same YAML that Dagster loads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import yaml
from pydantic import ValidationError

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.avro_pipelines import DEFS, DEFS_FILE
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.spec.pipeline import Mode, PipelineSpec
from cdc_lake.yaml_model import error_lines

MODE_VARIABLE = "CDC_LAKE_MODE"
"""The environment variable that overrides the mode of all pipelines, except polled ones, which are always triggered."""


def names(defs: Path = DEFS) -> list[str]:
    """Return the names of all pipelines, sorted."""
    return sorted(path.parent.name for path in defs.glob(f"*/{DEFS_FILE}"))


def load(name: str, defs: Path = DEFS) -> Pipeline:
    """Load one pipeline. Raises ContractError if no pipeline has this name, or if its YAML is not valid."""
    path = defs / name / DEFS_FILE
    if name not in names(defs):
        raise ContractError(
            f"Cannot load pipeline {name!r}: it does not exist. Existing pipelines: {', '.join(names(defs)) or 'none'}."
        )
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ContractError(f"Cannot read {path} as YAML: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("attributes"), dict):
        raise ContractError(f"{path} is not valid: attributes: missing; give a mapping with the pipeline's fields")
    try:
        spec = PipelineSpec.model_validate(content["attributes"])
    except ValidationError as error:
        raise ContractError(f"{path} is not valid: {'; '.join(error_lines(error))}") from error
    return build_pipeline(spec, path.parent)


def build_pipeline(spec: PipelineSpec, folder: Path) -> Pipeline:
    """Return the pipeline that a spec and its folder define.

    Raises ContractError if spec and folder have different names, because commands find a pipeline by its folder, and if
    the environment variable CDC_LAKE_MODE has an unknown mode.
    """
    if spec.name != folder.name:
        raise ContractError(
            f"{folder / DEFS_FILE} is not valid: name: use the folder's name, {folder.name}, not {spec.name!r}"
        )
    mode = os.environ.get(MODE_VARIABLE)
    if mode and mode not in get_args(Mode):
        raise ContractError(
            f"Cannot load pipelines: {MODE_VARIABLE} is {mode!r}. Set it to {' or '.join(get_args(Mode))}."
        )
    overridden = mode and spec.source.kind == "log"
    return Pipeline(spec.model_copy(update={"mode": mode}) if overridden else spec, folder)
