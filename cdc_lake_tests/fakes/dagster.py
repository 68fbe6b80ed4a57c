"""How the fakes are handed to Dagster: to assets, sensors and checks, as they are."""

from __future__ import annotations

import dagster as dg

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}  # run configuration


def evaluate(check: dg.AssetChecksDefinition, **resources: object) -> dg.AssetCheckResult:
    """What a check finds: Dagster's direct invocation would make the fakes anew, without what they hold."""
    found = check.op.compute_fn.decorated_fn(**resources)  # type: ignore[union-attr]
    assert isinstance(found, dg.AssetCheckResult)
    return found


def bound(**resources: object) -> dict[str, dg.ResourceDefinition]:
    """The fakes as they are, for assets and sensors."""
    return {name: dg.ResourceDefinition.hardcoded_resource(each) for name, each in resources.items()}
