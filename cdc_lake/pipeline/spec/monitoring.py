"""The fields `checks` and `freshness` of a pipeline's YAML."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from cdc_lake.pipeline.spec.field_types import Duration, matching, seconds
from cdc_lake.yaml_model import YamlModel


def _off(given: object) -> object:
    """Return "off" for false: YAML 1.1 reads `off` as a boolean."""
    return "off" if given is False else given


class ChecksSpec(YamlModel):
    """How often the checks that read whole tables run; the other checks run with each materialisation."""

    verify_every: Annotated[
        str,
        BeforeValidator(_off),
        matching(r"off|hourly|daily|[1-9]\d{0,5}[smhd]", "use off, hourly, daily, or a duration such as 30m or 6h"),
    ] = Field(default="6h", description="off, hourly, daily or a duration such as 6h")


def _at_least_a_minute(duration: str) -> str:
    if seconds(duration) < 60:
        raise ValueError("use at least 1m")
    return duration


class FreshnessSpec(YamlModel):
    """The maximum age of the newest heartbeat at each stage, and the maximum time between two runs of a stage."""

    topic: Duration = Field(default="2m", description="a duration such as 2m")
    raw: Duration = Field(default="5m", description="a duration such as 5m")
    lake: Duration = Field(default="5m", description="a duration such as 5m")
    runs: Annotated[Duration, AfterValidator(_at_least_a_minute)] = Field(
        default="1d", description="the maximum time between two runs of a stage, such as 1d; at least 1m"
    )
