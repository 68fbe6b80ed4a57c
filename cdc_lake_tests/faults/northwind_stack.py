"""The fault tests' stack: all components with the Northwind sample, processes that write, and checks of the result."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg2.extensions import connection

from cdc_lake.contract.objects import dead_letters, raw_objects
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.profile import resolved
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake_tests.faults.writers.writer_actions import PIPELINE
from cdc_lake_tests.faults.writers.writer_process import Writer
from cdc_lake_tests.helpers import row_comparison
from cdc_lake_tests.helpers.command_line import CommandLine

FAULTS = ("missing", "extra", "different", "doubled")
"""The counts of `cdc-lake verify` for rows that differ."""


@dataclass(frozen=True)
class NorthwindStack:
    """A running stack with the Northwind sample; `folder` is for logs and other files of the tests."""

    cli: CommandLine
    folder: Path

    @property
    def table(self) -> PipelineTable:
        """Return the pipeline's only table."""
        return load(PIPELINE).tables[0]

    @property
    def store(self) -> ObjectStore:
        """The bucket."""
        return location(self.resources["store"]).store()

    @property
    def resources(self) -> Mapping[str, Any]:
        """Return the resources at their current addresses."""
        return resolved()

    def writer(self, **environment: str) -> Writer:
        """Start a process that works on this stack."""
        return Writer({**self.cli.environment, **environment}, self.folder / "writers.log")

    def login(self) -> ConnectionParameters:
        """Return the connection parameters of the sample database."""
        server = self.resources["postgres"]
        return ConnectionParameters(server.host, server.port, server.database, server.user, server.password)

    def source(self) -> connection:
        """Open a connection to the sample database."""
        return self.login().connect()

    def change(self, number: int) -> int:
        """Update orders, update the lines of another order, delete a third one; return the number of changed orders."""
        with closing(self.source()) as db, db, db.cursor() as cursor:
            cursor.execute(
                "update datalake.orders set required_date = order_date + %s where order_id %% 40 = %s",
                (number, number % 40),
            )
            changed = cursor.rowcount
            cursor.execute(
                "update datalake.order_details set quantity = quantity + 1 where order_id = %s", (10300 + number,)
            )
            cursor.execute("delete from datalake.order_details where order_id = %s", (10900 + number,))
            cursor.execute("delete from datalake.orders where order_id = %s", (10900 + number,))
        return changed + 2

    def check_raw(self) -> None:
        """Require that every committed record of the topic is landed unchanged, once, or is a dead letter."""
        topic, kafka = self.table.topic, self.resources["kafka"]
        sent = {(message.partition, message.offset): _digest(message.value) for message in kafka.peek(topic)}
        store = self.store
        landed = [
            ((item.partition, offset), _digest(value))
            for manifest in table_progress.manifests(store, self.table)
            for item in manifest.objects
            for offset, value in raw_objects.records(store, item)
        ]
        duplicated = [place for place, count in Counter(place for place, _ in landed).items() if count > 1]
        assert not duplicated, f"landed more than once: {duplicated}"
        letters = (*self.dead_letters(), *dead_letters.letters(store, PIPELINE, closed=True))
        dead = {(letter.partition, letter.offset) for letter in letters if letter.object is None}
        assert dict(landed) == {place: value for place, value in sent.items() if place not in dead}

    def check_lake(self) -> None:
        """Require that the lake has the content of the source, and each key once."""
        bound = self.resources
        found = row_comparison.compare(
            self.table,
            bound["postgres"],
            bound["kafka"],
            bound["connect"],
            self.store,
            bound["athena"],
            seconds=60,
        )
        assert found.equal, found
        assert found.changed_since == 0, f"{found.changed_since} changes were not applied"
        name = f'"{self.table.database}"."{self.table.name}"'
        rows, keys = bound["athena"].query(f"SELECT count(*), count(DISTINCT order_id) FROM {name}").rows[0]
        assert rows == keys, f"{rows} rows of {keys} keys"

    def verify(self) -> Counter[str]:
        """Require that `cdc-lake verify` finds no difference, and return its counts."""
        done = self.cli.run("cdc-lake", "verify", PIPELINE, "--json", ok=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        tables = json.loads(done.stdout)["tables"].values()
        return Counter({name: sum(table[name] for table in tables) for name in ("compared", *FAULTS)})

    def dead_letters(self) -> list[DeadLetter]:
        """Return the pipeline's open dead letters."""
        return list(dead_letters.letters(self.store, PIPELINE))

    def drop_dead_letters(self) -> None:
        """Close all dead letters."""
        for letter in self.dead_letters():
            dead_letters.close(self.store, PIPELINE, letter, "dropped", None)


def _digest(value: bytes | None) -> bytes | None:
    """Return the hash of a record, since the records of a long run do not fit into memory."""
    return None if value is None else hashlib.sha256(value).digest()
