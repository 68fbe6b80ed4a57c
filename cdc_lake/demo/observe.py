"""Read rows and records from each stage, to verify the demo independently of the assets.

Records are counted in total and as distinct changes, because the connector re-sends the rows of an interrupted
snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.source.change_event import identity
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.registry_location import decode_for_display
from cdc_lake.samples.connection import ConnectionParameters
from resources.athena import Athena
from resources.kafka.resource import Kafka

Record = dict[str, Any]


@dataclass(frozen=True)
class Counts:
    """Rows or distinct changes of a table by stage, and the number of records in topic and raw.

    The stages are source, topic, raw, and each target by its name.
    """

    stages: Mapping[str, int]
    records: Mapping[str, int]


class Observer:
    """Reads one table of a pipeline at every stage, in the lake that of each target."""

    def __init__(self, table: PipelineTable, resources: Mapping[str, Any], store: ObjectStore) -> None:
        self.table = table
        self.postgres = table.pipeline.source_postgres(resources["postgres"])
        login, database = self.postgres.login(), self.postgres.database
        self.login = ConnectionParameters(login.host, login.port, database, login.user, login.password)
        self.kafka: Kafka = resources["kafka"]
        self.athena: Athena = resources["athena"]
        self.store = store

    def counts(self) -> Counts:
        """Count source rows, distinct changes in topic and raw, and current rows of each target."""
        topic, raw = list(self.topic_records()), list(self.raw_records())
        return Counts(
            stages={
                "source": self.postgres.row_count(
                    self.table.pipeline.spec.source.schema_,
                    self.table.polled_table if self.table.pipeline.polled else self.table.name,
                ),
                "topic": self.count_distinct(topic),
                "raw": self.count_distinct(raw),
                **{each.target.name: self.count_rows(each.database, each.view) for each in self.table.in_targets},
            },
            records={"topic": len(topic), "raw": len(raw)},
        )

    def topic_records(self) -> Iterable[Record]:
        """Return every committed record of the topic."""
        return (
            json.loads(decode_for_display(self.kafka, message.value) or b"{}")
            for message in self.kafka.peek(self.table.topic)
        )

    def raw_records(self) -> Iterable[Record]:
        """Return every landed record; verifies each object."""
        for manifest in table_progress.manifests(self.store, self.table):
            for item in manifest.objects:
                for _, value in raw_objects.records(self.store, item):
                    yield json.loads(value)

    def changes(self, records: Iterable[Record], row_id: int) -> list[Record]:
        """Return the distinct changes of the row with this key, in the order of their first delivery."""
        [key] = self.table.spec.key
        found: dict[tuple[object, ...], Record] = {}
        for record in records:
            if record[key] == row_id:
                found.setdefault(identity(record, self.table.spec.key), record)
        return list(found.values())

    def count_distinct(self, records: Sequence[Record]) -> int:
        """Count the distinct changes among records."""
        return len({identity(record, self.table.spec.key) for record in records})

    def count_rows(self, database: str, name: str) -> int:
        """Count the rows of a table or view of the catalog."""
        return int(self.scalar(f'SELECT count(*) FROM "{database}"."{name}"'))  # noqa: S608 - validated identifiers

    def scalar(self, sql: str) -> Any:  # noqa: ANN401 - the type depends on the query
        """Return the single value of an Athena query; None if it returns no row."""
        rows = self.athena.query(sql).rows
        return rows[0][0] if rows else None
