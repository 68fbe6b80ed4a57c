"""The source side of a stack (PostgreSQL, Kafka, Connect) for the tests of its resources.

Fixtures, imported by conftest.py: `source` for a test that needs its own schema, `source_engines` for others.
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

from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home, source_postgres
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import Endpoints
from infra.local.stack.stack import Stack
from resources.connect.config_template import render, table_pattern
from resources.connect.kafka_connect import KafkaConnect
from resources.kafka.records import Message
from resources.kafka.resource import Kafka
from resources.postgres.resource import Postgres
from resources.waiting import until

CONNECTOR = Path(__file__).parents[3] / "connectors" / "debezium-postgres.json"
HINT = "Run `cdc-lake up`."
HEARTBEAT_SECONDS = 60.0


@dataclass(frozen=True)
class Source:
    """The engines, and the PostgreSQL schema of one test."""

    stack: Stack
    at: Endpoints
    postgres: Postgres
    kafka: Kafka
    schema: str = "public"
    tables: tuple[str, ...] = field(default=("ev", "cdc_heartbeat"))

    @property
    def connect(self) -> KafkaConnect:
        """Return the worker at its current port, which can change after a kill."""
        at = load_endpoints(self.stack.home.path)
        user, password = at.connect_login
        return KafkaConnect(url=at.connect_url, user=user, password=password, hint=HINT)

    def execute(self, statement: str, *values: object) -> None:
        """Run SQL with the test's schema first on the search path."""
        with self.postgres.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("set search_path to {}").format(sql.Identifier(self.schema)))
            cursor.execute(statement, values or None)

    def topic(self, table: str = "ev") -> str:
        """Return the topic of one of the test's tables."""
        return f"{self.schema}.{self.schema}.{table}"

    def config(self, **changes: str) -> dict[str, str]:
        """Return the configuration from connectors/debezium-postgres.json, for the test's tables."""
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
        """Deploy the connector, and wait until Kafka has everything that is committed by now."""
        self.connect.put(self.schema, self.config())
        self.connect.wait_running(self.schema)
        self.wait_for_heartbeat()

    def wait_for_heartbeat(self) -> int:
        """Wait until Kafka has everything that is committed by now; return the LSN of the heartbeat that proves it."""
        lsn = self.postgres.write_heartbeat(self.schema)

        def newest() -> int:
            topic = self.topic("cdc_heartbeat")
            messages = self.kafka.tail(topic, 1) if self.kafka.topic(topic) else []
            row = body(messages[0]) if messages else {}
            return int(row["__lsn"]) if row and row["__snapshot"] is None else 0

        until(
            newest,
            lambda lsn_in_kafka: lsn_in_kafka >= lsn,
            seconds=HEARTBEAT_SECONDS,
            what=f"a heartbeat at LSN {lsn} or later in Kafka",
        )
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
        """Return the values of all committed records of a table's topic, in order."""
        return [body(message) for message in self.kafka.peek(self.topic(table))]

    def reset(self) -> None:
        """Remove connector, offsets, slot and topics of a deployment."""
        self.connect.delete(self.schema)
        self.postgres.drop_slot(self.schema)
        for topic in self.remaining_topics():
            self.kafka.delete_topic(topic)

    def remaining_topics(self) -> list[str]:
        """Return the test's topics."""
        return [
            t for t in self.kafka.topics() if t.split(".")[0] == self.schema or t.endswith(f"heartbeat.{self.schema}")
        ]


def body(message: Message) -> dict[str, Any]:
    """Return a record's value."""
    assert message.value is not None
    return dict(json.loads(message.value))


def source_side(stack: Stack) -> Source:
    """Return the source side of a running stack, without a test's schema."""
    at = load_endpoints(stack.home.path)
    postgres = source_postgres(at).model_copy(update={"hint": HINT})
    return Source(stack=stack, at=at, postgres=postgres, kafka=Kafka(bootstrap=at.kafka_bootstrap, hint=HINT))


@contextmanager
def own_schema(engines: Source, name: str) -> Iterator[Source]:
    """Create an empty schema of this name; remove it and its deployment after the block."""
    source = replace(engines, schema=name)
    with source.postgres.connect() as connection, connection.cursor() as cursor:
        cursor.execute(sql.SQL("create schema {}").format(sql.Identifier(name)))
    try:
        yield source
    finally:
        source.reset()
        with source.postgres.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(name)))
            cursor.execute(sql.SQL("drop publication if exists {}").format(sql.Identifier(name)))


@pytest.fixture(scope="package")
def source_engines() -> Iterator[Source]:
    """Run the engines."""
    with scratch_home() as home, running_stack(home, only=["connect"]) as stack:
        yield source_side(stack)


@pytest.fixture
def source(source_engines: Source, request: pytest.FixtureRequest) -> Iterator[Source]:
    """Return the engines with an empty schema named after the test, which is removed after it."""
    name = "".join(c if c.isalnum() else "_" for c in request.node.name.lower())[:40].strip("_")
    with own_schema(source_engines, name) as source:
        yield source
