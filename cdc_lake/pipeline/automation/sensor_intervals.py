"""How often sensors look, by what the profile's systems take to be asked, and which of them there are to look at."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lake import profile

QUEUE = "queue"
"""The resource that tells of new objects, where the profile has one."""
BESIDE_QUEUE_SECONDS = 60
_LOOKS = 3
"""A connector that AWS takes minutes to change is not asked for as often as one that runs here."""


@dataclass(frozen=True)
class Pace:
    """What `sensors.build` and others are told."""

    listing_seconds: int = 5
    """How often the bucket is listed."""
    connector_seconds: int = 5
    """How often the connector is asked for."""
    refreshes: bool = False
    """Whether dashboards may read their rows later than the lake changed, so that somebody has to come back to them."""


def of_profile() -> Pace:
    """The chosen profile's: the bucket is listed seldom where a queue tells of new objects."""
    found = profile.resources()
    return Pace(
        listing_seconds=BESIDE_QUEUE_SECONDS if QUEUE in found else Pace.listing_seconds,
        connector_seconds=max(Pace.connector_seconds, int(_LOOKS * found["deployment"].poll_seconds)),
        refreshes=found["dashboards"].reads_later,
    )
