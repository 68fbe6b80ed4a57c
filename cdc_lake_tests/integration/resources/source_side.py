"""The stack's source side (PostgreSQL, Kafka, Connect) for the tests of its resources, one stack a test run.

conftest.py offers its fixtures: `source` for a test that needs a schema of its own, `engines` for others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from psycopg2 import sql

from cdc_lake_tests.local_stack import running_stack, scratch_home
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import Endpoints
from infra.local.stack.stack import Stack
from resources.connect.connector_config import render, table_pattern
from resources.connect.kafka_connect import KafkaConnect
from resources.kafka.records import Message
from resources.kafka.resource import Kafka
from resources.postgres.resource import Postgres
from resources.waiting import until

CONNECTOR = Path(__file__).parents[3] / "connectors" / "debezium-postgres.json"
HINT = "Run `cdc-lake up`."
BEAT_SECONDS = 60.0


@dataclass(frozen=True)
class Source:
    """The engines, and a schema of PostgreSQL that belongs to one test."""

    stack: Stack
    at: Endpoints
    postgres: Postgres
    kafka: Kafka
    schema: str = "public"
    tables: tuple[str, ...] = field(default=("ev", "cdc_heartbeat"))

    @property
    def connect(self) -> KafkaConnect:
        """The worker, at its present port: one that was killed can come back at another."""
        at = load_endpoints(self.stack.home.path)
        user, password = at.connect_login
        return KafkaConnect(url=at.connect_url, user=user, password=password, hint=HINT)

    def execute(self, statement: str, *values: object) -> None:
        """Run SQL with the test's schema first on the search path."""
        with self.postgres.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("set search_path to {}").format(sql.Identifier(self.schema)))
            cursor.execute(statement, values or None)

    def topic(self, table: str = "ev") -> str:
        """The topic of one of the test's tables."""
        return f"{self.schema}.{self.schema}.{table}"

    def config(self, **changes: str) -> dict[str, str]:
        """Northwind's source connector, for the test's tables."""
        values = {
            "host": self.at.postgres_host,
            "port": str(self.at.postgres_port),
            "user": self.at.capture_role,
            "password": f"${{file:{self.at.connect_secrets_file}:postgres.password}}",
            "database": self.at.postgres_database,
            "slot": self.schema,
            "publication": self.schema,
            "prefix": self.schema,
            "tables": table_pattern((self.schema, table) for table in self.tables),
            "schema": self.schema,
            "partitions": "1",
            "retention_ms": "604800000",
            "exactly_once": "required",
            "record_bytes": "16777216",
        }
        return {**render(CONNECTOR, values), **changes}

    def deploy(self) -> None:
        """Deploy the connector and wait until everything committed by now is in Kafka."""
        self.connect.put(self.schema, self.config())
        self.connect.wait_running(self.schema)
        self.wait_for_beat()

    def wait_for_beat(self) -> int:
        """Wait until everything committed by now is in Kafka; return the LSN of the beat that shows it."""
        lsn = self.postgres.beat(self.schema)

        def newest() -> int:
            topic = self.topic("cdc_heartbeat")
            messages = self.kafka.tail(topic, 1) if self.kafka.topic(topic) else []
            row = body(messages[0]) if messages else {}
            return int(row["__lsn"]) if row and row["__snapshot"] is None else 0

        until(newest, lambda at: at >= lsn, seconds=BEAT_SECONDS, what=f"a heartbeat at LSN {lsn} or later in Kafka")
        return lsn

    def wait_for_records(self) -> None:
        """Wait until the table's topic has more records than now."""
        before = self.kafka.end_offsets(self.topic())
        until(
            lambda: self.kafka.end_offsets(self.topic()),
            lambda now: now != before,
            seconds=30,
            what=f"more records in topic {self.topic()}",
        )

    def rows(self, table: str = "ev") -> list[dict[str, Any]]:
        """The values of all committed records of a table's topic, in order."""
        return [body(message) for message in self.kafka.peek(self.topic(table))]

    def reset(self) -> None:
        """Remove what a deployment leaves: connector, offsets, slot, topics."""
        self.connect.delete(self.schema)
        self.postgres.drop_slot(self.schema)
        for topic in self.leftovers():
            self.kafka.delete_topic(topic)

    def leftovers(self) -> list[str]:
        """The topics that are the test's."""
        return [
            t for t in self.kafka.topics() if t.split(".")[0] == self.schema or t.endswith(f"heartbeat.{self.schema}")
        ]


def body(message: Message) -> dict[str, Any]:
    """A record's value."""
    assert message.value is not None
    return dict(json.loads(message.value))


def source_side(stack: Stack) -> Source:
    """The source side of a running stack; no test's own."""
    at = load_endpoints(stack.home.path)
    postgres = Postgres(
        host=at.postgres_host,
        port=at.postgres_port,
        user=at.postgres_user,
        password=at.postgres_password.get_secret_value(),
        database=at.postgres_database,
        capture_role=at.capture_role,
        hint=HINT,
    )
    return Source(stack=stack, at=at, postgres=postgres, kafka=Kafka(bootstrap=at.kafka_bootstrap, hint=HINT))


@contextmanager
def own_schema(engines: Source, name: str) -> Iterator[Source]:
    """The engines with an empty schema of this name, and nothing left of it afterwards."""
    mine = replace(engines, schema=name)
    with mine.postgres.connect() as connection, connection.cursor() as cursor:
        cursor.execute(sql.SQL("create schema {}").format(sql.Identifier(name)))
    try:
        yield mine
    finally:
        mine.reset()
        with mine.postgres.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(name)))
            cursor.execute(sql.SQL("drop publication if exists {}").format(sql.Identifier(name)))


@pytest.fixture(scope="package")
def engines() -> Iterator[Source]:
    """The running engines; no test's own."""
    with scratch_home() as home, running_stack(home, only=["connect"]) as stack:
        yield source_side(stack)


@pytest.fixture
def source(engines: Source, request: pytest.FixtureRequest) -> Iterator[Source]:
    """The engines with an empty schema named after the test, and nothing left of it afterwards."""
    name = "".join(c if c.isalnum() else "_" for c in request.node.name.lower())[:40].strip("_")
    with own_schema(engines, name) as mine:
        yield mine
