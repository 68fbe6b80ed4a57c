"""Functions that pass the fakes to Dagster's assets, sensors and checks without copying them."""

from __future__ import annotations

import dagster as dg

from cdc_lake.pipeline.assets import parallel_tables

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""The configuration of a run that logs nothing to the console."""


def evaluate(check: dg.AssetChecksDefinition, **arguments: object) -> dg.AssetCheckResult:
    """Return the result of a check for these resources, and `context` if it reads the context.

    Dagster's direct invocation would copy the fakes without their content.
    """
    found = check.op.compute_fn.decorated_fn(**arguments)  # type: ignore[union-attr]
    assert isinstance(found, dg.AssetCheckResult)
    return found


def fake_resources(**fakes: object) -> dict[str, dg.ResourceDefinition]:
    """Return definitions of these fakes, without copies, and of the resource `table_threads`, which assets require."""
    definitions = {name: dg.ResourceDefinition.hardcoded_resource(each) for name, each in fakes.items()}
    return {**definitions, **parallel_tables.RESOURCES}
