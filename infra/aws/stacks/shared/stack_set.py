"""The stacks that Dagster's stack depends on, in one value."""

from __future__ import annotations

from dataclasses import dataclass

from infra.aws.stacks.catalog import CatalogStack
from infra.aws.stacks.connect import ConnectStack
from infra.aws.stacks.database import DatabaseStack
from infra.aws.stacks.network import NetworkStack
from infra.aws.stacks.object_events import EventsStack
from infra.aws.stacks.quicksight import QuickSightStack
from infra.aws.stacks.spark import SparkStack
from infra.aws.stacks.storage import StorageStack
from infra.aws.stacks.streaming import StreamingStack


@dataclass(frozen=True)
class StackSet:
    """All stacks except Dagster's and the alarms."""

    network: NetworkStack
    events: EventsStack
    storage: StorageStack
    catalog: CatalogStack
    database: DatabaseStack
    streaming: StreamingStack
    connect: ConnectStack
    spark: SparkStack
    quicksight: QuickSightStack
