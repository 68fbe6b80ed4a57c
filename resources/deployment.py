"""Settings of a deployment that do not belong to one external system."""

from __future__ import annotations

from typing import Literal

import dagster as dg
from pydantic import Field

RECORD_BYTES = 16 * 2**20


class Deployment(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The profile, the source's host, limits and waiting times of this deployment."""

    profile: str
    source_host: str
    """The database's host name in the Connect worker's network."""
    password_reference: str = Field(
        description="The worker's reference to the database's password: a config provider's `${provider:path:key}`."
    )
    exactly_once: Literal["required", "requested"] = Field(
        default="required",
        description="Whether a connector refuses to start on a worker without `exactly.once.source.support`.",
    )
    record_bytes: int = Field(default=RECORD_BYTES, description="The size of the largest record that topics accept.")
    registry_url: str = Field(default="", description="The schema registry's URL for the Connect worker's converters.")
    registry_authorization: str = Field(
        default="", description="The worker's reference to the credentials of its converters for the registry."
    )
    pages: str
    """The folder for generated dashboard pages."""
    snapshot_seconds: float = 1800.0
    """The maximum duration of an initial snapshot."""
    poll_seconds: float = 1.0
    """The pause between two requests for a connector's state during an initial snapshot."""
    stream_seconds: float = 300.0
    """How long a check waits until a committed change has passed through the stream."""
