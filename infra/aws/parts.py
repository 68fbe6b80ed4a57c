"""The stacks that Dagster stands on, in one value.

Here: the value. Not here: how they are made (app.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from infra.aws.catalog import CatalogStack
from infra.aws.connect import ConnectStack
from infra.aws.database import DatabaseStack
from infra.aws.events import EventsStack
from infra.aws.network import NetworkStack
from infra.aws.quicksight import QuickSightStack
from infra.aws.spark import SparkStack
from infra.aws.storage import StorageStack
from infra.aws.streaming import StreamingStack


@dataclass(frozen=True)
class Parts:
    """One of each."""

    network: NetworkStack
    events: EventsStack
    storage: StorageStack
    catalog: CatalogStack
    database: DatabaseStack
    streaming: StreamingStack
    connect: ConnectStack
    spark: SparkStack
    quicksight: QuickSightStack
