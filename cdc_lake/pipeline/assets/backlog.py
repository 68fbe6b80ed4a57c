"""Whether a run lands and applies a table again, instead of ending: the next run takes longer to start than a batch."""

import time
from typing import Literal

import dagster as dg

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.automation import run_requests
from cdc_lake.pipeline.operations import landing_modes
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import topic_state
from resources.kafka.resource import Kafka

SECONDS = 30.0
"""A run lands nothing again after this time: other pipelines wait for its place, and datasets for its end."""


class Backlog:
    """What has arrived for a target of a table since the run applied it.

    Only runs of the land sensor continue. A sink connector's objects are adopted when the sensor finds them. Each
    target of a table lands when it is time, and applies what another one has landed.
    """

    def __init__(
        self, context: dg.AssetExecutionContext, table: PipelineTable, kafka: Kafka, store: ObjectStore, began: float
    ) -> None:
        """Begin, after the run has landed the table and before it applies the target.

        The run began at `began` (time.monotonic()).
        """
        selected = context.job_def.asset_layer.selected_asset_keys
        self._table, self._kafka = table, kafka
        self._chain = Chain(store, table.pipeline.name, table.topic)
        self._continues = (
            table.key("raw") in selected
            and run_requests.is_sensor_run(context.run)
            and landing_modes.sink(table) is None
        )
        self._manifest = _number(self._chain.head()) if self._continues else 0
        self._landed_at = time.monotonic()
        self._ends_at = began + SECONDS

    def next_step(self) -> Literal["land", "apply"] | None:
        """Return `land` if it is time to land again, `apply` if another target has landed.

        It is time if `flush_records` wait, or if any wait `flush_seconds` after the previous landing.
        """
        if not self._continues:
            return None
        now, landing = time.monotonic(), self._table.landing
        head = self._chain.head()
        number = _number(head)
        # The chain is read before the topic, so that it never appears to be ahead of the topic.
        behind = table_progress.offsets_behind(head, topic_state.committed(self._kafka, self._table))
        if now < self._ends_at and (
            behind >= landing.flush_records or (behind > 0 and now >= self._landed_at + landing.flush_seconds)
        ):
            self._manifest, self._landed_at = number + 1, now  # the landing appends one manifest
            return "land"
        if number > self._manifest:
            self._manifest = number
            return "apply"
        return None


def _number(head: Manifest | None) -> int:
    return 0 if head is None else head.number
