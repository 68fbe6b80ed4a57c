"""What the tests of faults work on: one stack with the sample database, writers on it, and a judge of the result."""

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

from cdc_lake.contract.objects import dead_letters, json_lines
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.naming import TableFlow, location
from cdc_lake.profile import resolved
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake_tests import row_comparison
from cdc_lake_tests.e2e.conftest import CommandLine
from cdc_lake_tests.faults.writer_actions import PIPELINE
from cdc_lake_tests.faults.writer_process import Writer

FAULTS = ("missing", "extra", "different", "doubled")
"""What `cdc-lake verify` counts of rows that are not the same on both sides."""


@dataclass(frozen=True)
class Bench:
    """A running stack with Northwind loaded; `folder` is for logs and what else a test writes."""

    cli: CommandLine
    folder: Path

    @property
    def table(self) -> TableFlow:
        """The pipeline's one table."""
        return load(PIPELINE).tables[0]

    @property
    def store(self) -> ObjectStore:
        """The bucket."""
        return location(self.resources["store"]).store()

    @property
    def resources(self) -> Mapping[str, Any]:
        """The resources at their present addresses."""
        return resolved()

    def writer(self, **environment: str) -> Writer:
        """A new process that works on this stack."""
        return Writer({**self.cli.environment, **environment}, self.folder / "writers.log")

    def login(self) -> ConnectionParameters:
        """The way into the sample database."""
        server = self.resources["postgres"]
        return ConnectionParameters(server.host, server.port, server.database, server.user, server.password)

    def source(self) -> connection:
        """A connection to the sample database."""
        return self.login().connect()

    def change(self, number: int) -> int:
        """Change some orders at the source, a line each of another kind, and delete one; how many were changed."""
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

    def judge_raw(self) -> None:
        """Every committed record of the topic is landed exactly once, as it was sent, or is a dead letter."""
        topic, kafka = self.table.topic, self.resources["kafka"]
        sent = {(message.partition, message.offset): _digest(message.value) for message in kafka.peek(topic)}
        store = self.store
        landed = [
            ((item.partition, offset), _digest(value))
            for manifest in table_progress.manifests(store, self.table)
            for item in manifest.objects
            for offset, value in json_lines.records(store, item)
        ]
        twice = [place for place, count in Counter(place for place, _ in landed).items() if count > 1]
        assert not twice, f"landed more than once: {twice}"
        letters = (*self.dead_letters(), *dead_letters.letters(store, PIPELINE, closed=True))
        dead = {(letter.partition, letter.offset) for letter in letters if letter.object is None}
        assert dict(landed) == {place: value for place, value in sent.items() if place not in dead}

    def judge_lake(self) -> None:
        """The lake equals the source by content, and has each key once."""
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
        name = f'"{self.table.pipeline.spec.catalog}"."{self.table.name}"'
        rows, keys = bound["athena"].query(f"SELECT count(*), count(DISTINCT order_id) FROM {name}").rows[0]
        assert rows == keys, f"{rows} rows of {keys} keys"

    def verify(self) -> Counter[str]:
        """`cdc-lake verify` finds no difference; its counts."""
        done = self.cli.run("cdc-lake", "verify", PIPELINE, "--json", ok=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        tables = json.loads(done.stdout)["tables"].values()
        return Counter({name: sum(table[name] for table in tables) for name in ("compared", *FAULTS)})

    def dead_letters(self) -> list[DeadLetter]:
        """The pipeline's open dead letters."""
        return list(dead_letters.letters(self.store, PIPELINE))

    def drop_dead_letters(self) -> None:
        """Close them all."""
        for letter in self.dead_letters():
            dead_letters.close(self.store, PIPELINE, letter, "dropped", None)


def _digest(value: bytes | None) -> bytes | None:
    """What is kept of a record for comparison: a long run has more of them than memory."""
    return None if value is None else hashlib.sha256(value).digest()
