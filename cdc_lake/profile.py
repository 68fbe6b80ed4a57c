"""The profile: the systems that the resources connect to (`CDC_LAKE_PROFILE`, `local` by default).

Code that uses the resources is the same in every profile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg

from cdc_lake.pipeline.automation import run_host
from resources.errors import ResourceError
from resources.spark.job_interface import SparkJobs


def resources() -> dict[str, Any]:
    """Return the resources, keyed by the names of the assets' parameters.

    Secrets are referenced as environment variables, which the local profile sets for its own process. Raises
    ResourceError for a profile that does not exist, or whose settings are missing.
    """
    profile = os.environ.get("CDC_LAKE_PROFILE", "local")
    if profile not in PROFILES:
        raise ResourceError(
            f"Cannot use profile {profile!r} of CDC_LAKE_PROFILE: there is no such profile.",
            f"Set the variable to {' or '.join(PROFILES)}, or unset it.",
        )
    return dict(PROFILES[profile]())


def resolved() -> Mapping[str, Any]:
    """Return the resources except Spark, with resolved environment variables, for use outside of a run."""
    return {name: _looked_up(resource) for name, resource in resources().items() if name != "spark"}


def spark() -> SparkJobs:
    """Return Spark for use outside of a run."""
    found: SparkJobs = _looked_up(resources()["spark"])
    return found


def run_resources() -> Mapping[str, dg.ConfigurableResource[Any] | dg.ResourceDefinition]:
    """Return the resources for the code location, by the same names, and those of each run (parallel_tables.py).

    Each run and sensor tick resolves the profile's resources again: a code location is loaded once, often before the
    first `cdc-lake up`, so that it would keep outdated addresses. Dagster's pages show only the resources' names.
    Raises ResourceError for a profile that does not exist.
    """
    from cdc_lake.pipeline.assets import parallel_tables  # noqa: PLC0415 - commands do not need it

    return {**{name: ProfileResource(name=name) for name in resources()}, **parallel_tables.RESOURCES}


class ProfileResource(dg.ConfigurableResource[Any]):
    """A resource of the profile, with the addresses and keys at the start of a run or tick."""

    name: str

    def create_resource(self, context: dg.InitResourceContext) -> Any:  # noqa: ANN401 - each resource has another class
        """Return the resource, and tag the run with the name of this machine."""
        run_host.tag(context)
        return _looked_up(resources()[self.name])


def _looked_up(resource: dg.ConfigurableResource[Any]) -> Any:  # noqa: ANN401 - each resource has another class
    """Return the resource with the values of its environment variables.

    Dagster's own function would create a Dagster instance for each resource.
    """
    values: dict[str, Any] = {name: value.get_value() for name, value in resource if isinstance(value, dg.EnvVar)}
    values |= {name: _looked_up(value) for name, value in resource if isinstance(value, dg.ConfigurableResource)}
    return resource.model_copy(update=values)


def _local() -> dict[str, dg.ConfigurableResource[Any]]:
    from cdc_lake import profile_local  # noqa: PLC0415 - the aws profile does not use the local stack

    return profile_local.resources()


def _aws() -> dict[str, dg.ConfigurableResource[Any]]:
    # The modules for EMR, MSK and QuickSight take longer to import than the whole local profile.
    from cdc_lake import profile_aws  # noqa: PLC0415 - see above

    return profile_aws.resources()


PROFILES: Mapping[str, Callable[[], dict[str, dg.ConfigurableResource[Any]]]] = {
    "local": _local,
    "aws": _aws,
}
