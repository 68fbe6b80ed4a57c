"""What differs from one deployment to another and belongs to no single system."""

from __future__ import annotations

from typing import Literal

import dagster as dg
from pydantic import Field

RECORD_BYTES = 16 * 2**20


class Deployment(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Settings of the place where the pipelines run."""

    profile: str
    source_host: str
    """The database's host as the Connect worker reaches it."""
    password_reference: str = Field(
        description="How the worker looks the database's password up: a config provider's `${provider:path:key}`."
    )
    exactly_once: Literal["required", "requested"] = Field(
        default="required",
        description="Whether a connector refuses to start on a worker without `exactly.once.source.support`.",
    )
    record_bytes: int = Field(default=RECORD_BYTES, description="The largest record that topics take.")
    pages: str
    """The folder that dashboards are written to."""
    snapshot_seconds: float = 1800.0
    """How long an initial snapshot may take."""
    poll_seconds: float = 1.0
    """How often whatever runs connectors is asked for one's state meanwhile."""
    stream_seconds: float = 300.0
    """How long a check waits for what is committed to come through the stream."""
