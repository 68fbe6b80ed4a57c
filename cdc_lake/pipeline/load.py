"""Pipelines by name, for the command line and tests: the same YAML that Dagster loads.

Here: finding and reading the files. Not here: what they may say (spec.py).
"""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import ValidationError

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.flow import Flow
from cdc_lake.pipeline.spec import PipelineSpec

DEFS = Path(__file__).parents[1] / "defs"


def names(defs: Path = DEFS) -> list[str]:
    """The pipelines there are, sorted."""
    return sorted(path.parent.name for path in defs.glob("*/defs.yaml"))


def load(name: str, defs: Path = DEFS) -> Flow:
    """One pipeline. Raises ContractError where there is none of that name, or its YAML is not valid."""
    path = defs / name / "defs.yaml"
    if name not in names(defs):
        raise ContractError(f"there is no pipeline {name!r}; there are: {', '.join(names(defs)) or 'none'}")
    try:
        spec = PipelineSpec.model_validate(yaml.safe_load(path.read_text())["attributes"])
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ContractError(f"{path.parent.name}/{path.name} is not valid: {faults}") from error
    return Flow(spec, path.parent)
