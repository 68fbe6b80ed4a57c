"""The profile: which systems the resources stand for (`CDC_LAKE_PROFILE`, `local` by default).

Here: binding. The code above the resources is the same in every profile. Not here: the resources themselves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg

from cdc_lake import profile_local
from cdc_lake.pipeline.automation import run_host
from resources.errors import ResourceError
from resources.spark.job_interface import SparkJobs


def resources() -> dict[str, Any]:
    """The resources by the names that assets ask for.

    Secrets are bound as environment variables, which the local profile sets for its own process. Raises ResourceError
    for a profile that does not exist, or whose settings are missing.
    """
    profile = os.environ.get("CDC_LAKE_PROFILE", "local")
    if profile not in PROFILES:
        raise ResourceError(
            f"CDC_LAKE_PROFILE is {profile!r}; allowed: {', '.join(PROFILES)}.", "Unset it, or set it to one of these."
        )
    return dict(PROFILES[profile]())


def resolved() -> Mapping[str, Any]:
    """The resources for use outside of a run, with their environment variables looked up; Spark runs in runs only."""
    return {name: _looked_up(resource) for name, resource in resources().items() if name != "spark"}


def spark() -> SparkJobs:
    """Spark for use outside of a run."""
    found = _looked_up(resources()["spark"])
    if not isinstance(found, SparkJobs):
        raise TypeError(f"the profile's Spark is a {type(found).__name__}")
    return found


def bound() -> Mapping[str, dg.ConfigurableResource[Any]]:
    """The resources for the code location, by the same names: each run and each tick of a sensor looks them up anew.

    A code location is loaded once, often before the first `cdc-lake up`: what it read then would stay. Dagster's
    pages show their names only. Raises ResourceError for a profile that does not exist.
    """
    return {name: AsOfNow(name=name) for name in resources()}


class AsOfNow(dg.ConfigurableResource[Any]):
    """A resource of the profile, with the addresses and keys that it has when a run or a tick begins."""

    name: str

    def create_resource(self, context: dg.InitResourceContext) -> Any:  # noqa: ANN401 - each has a class of its own
        """The resource; the run that it is for says on which machine it is."""
        run_host.tag(context)
        return _looked_up(resources()[self.name])


def _looked_up(resource: dg.ConfigurableResource[Any]) -> dg.ConfigurableResource[Any]:
    """The resource with values in its environment variables' place. Dagster's own way makes an instance for each."""
    values: dict[str, Any] = {name: value.get_value() for name, value in resource if isinstance(value, dg.EnvVar)}
    values |= {name: _looked_up(value) for name, value in resource if isinstance(value, dg.ConfigurableResource)}
    return resource.model_copy(update=values)


def _aws() -> dict[str, dg.ConfigurableResource[Any]]:
    # EMR's, MSK's and QuickSight's modules take longer to import than all of the local profile.
    from cdc_lake import profile_aws  # noqa: PLC0415 - as said

    return profile_aws.resources()


PROFILES: Mapping[str, Callable[[], dict[str, dg.ConfigurableResource[Any]]]] = {
    "local": profile_local.resources,
    "aws": _aws,
}
