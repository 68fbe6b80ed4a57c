"""A fake of the metrics resource that keeps what is put."""

from __future__ import annotations

from collections.abc import Mapping

from resources.aws.metrics import UNITS


class FakeMetrics:
    """Implements resources.aws.metrics.Metrics."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, float]]] = []
        """The metrics of each pipeline, the newest last."""

    def put(self, pipeline: str, values: Mapping[str, float]) -> None:
        """See Metrics."""
        assert values.keys() <= UNITS.keys()
        self.sent.append((pipeline, dict(values)))
