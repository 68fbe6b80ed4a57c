"""The intervals of sensors, which depend on the profile: on its queue, and on how fast its systems answer."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lake import profile

QUEUE = "queue"
"""The name of the resource that reports new objects, if the profile has one."""
LISTING_SECONDS_WITH_QUEUE = 60
_CONNECTOR_POLL_FACTOR = 3
"""The connector sensor's interval, as a multiple of the deployment's poll_seconds. AWS takes minutes to change a
connector, so its state is read less often than that of a local connector."""


@dataclass(frozen=True)
class SensorIntervals:
    """The intervals between ticks of a pipeline's sensors."""

    listing_seconds: int = 5
    """The interval of the sensors that list the bucket."""
    connector_seconds: int = 5
    """The interval of the sensor that reads the connector's state."""


def for_profile() -> SensorIntervals:
    """Return the intervals for the configured profile: with a queue the bucket is listed less often."""
    found = profile.resources()
    return SensorIntervals(
        listing_seconds=LISTING_SECONDS_WITH_QUEUE if QUEUE in found else SensorIntervals.listing_seconds,
        connector_seconds=max(
            SensorIntervals.connector_seconds, int(_CONNECTOR_POLL_FACTOR * found["deployment"].poll_seconds)
        ),
    )
