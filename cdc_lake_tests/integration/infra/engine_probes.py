"""Writes data to every engine of a stack, and checks that it is still there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import httpx
import psycopg2
import pytest
from botocore.config import Config
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tenacity import retry, stop_after_delay, wait_fixed

from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import BUCKET, Endpoints
from infra.local.stack.stack import Stack
from infra.local.stack.stack_secrets import load_or_make

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NAMES = ("postgres", "kafka", "connect", "s3")
TOPIC = "kept"
CONNECTOR = "kept"
RETRIED = retry(stop=stop_after_delay(60), wait=wait_fixed(0.3), reraise=True)


@dataclass(frozen=True)
class EngineClients:
    """Clients for one stack."""

    at: Endpoints

    def postgres(self) -> psycopg2.extensions.connection:
        """Open a connection of the superuser to the stack's database."""
        return psycopg2.connect(
            host=self.at.postgres_host,
            port=self.at.postgres_port,
            user=self.at.postgres_user,
            password=self.at.postgres_password.get_secret_value(),
            dbname=self.at.postgres_database,
            connect_timeout=5,
        )

    def s3(self) -> S3Client:
        """Return a client of the object store."""
        return boto3.client(
            "s3",
            endpoint_url=self.at.s3_endpoint,
            region_name=self.at.region,
            aws_access_key_id=self.at.s3_access_key,
            aws_secret_access_key=self.at.s3_secret_key.get_secret_value(),
            config=Config(s3={"addressing_style": "path"}),
        )

    def write(self) -> None:
        """Write a row, a record and an object, and deploy a connector that streams the row's table."""
        with closing(self.postgres()) as connection, connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE kept (id int PRIMARY KEY); INSERT INTO kept VALUES (1)")
            cursor.execute(f"CREATE PUBLICATION kept FOR TABLE kept; GRANT SELECT ON kept TO {self.at.capture_role}")
        admin = AdminClient({"bootstrap.servers": self.at.kafka_bootstrap})
        admin.create_topics([NewTopic(TOPIC, num_partitions=1)])[TOPIC].result()
        producer = Producer({"bootstrap.servers": self.at.kafka_bootstrap, "acks": "all"})
        producer.produce(TOPIC, b"value", b"key")
        assert producer.flush(10) == 0
        self.s3().put_object(Bucket=BUCKET, Key="kept/object", Body=b"bytes")
        self.deploy()

    def deploy(self) -> None:
        """Deploy a Debezium connector that reads its password from the worker's secrets file."""
        password = f"${{file:{self.at.connect_secrets_file}:postgres.password}}"
        config = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": self.at.postgres_host,
            "database.port": str(self.at.postgres_port),
            "database.user": self.at.capture_role,
            "database.password": password,
            "database.dbname": self.at.postgres_database,
            "plugin.name": "pgoutput",
            "publication.name": "kept",
            "publication.autocreate.mode": "disabled",
            "slot.name": "kept",
            "topic.prefix": "kept",
            "table.include.list": "public.kept",
            "exactly.once.support": "required",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": "1",
        }
        self.connect("PUT", f"/connectors/{CONNECTOR}/config", json=config).raise_for_status()

    def connect(self, method: str, path: str, **more: Any) -> httpx.Response:  # noqa: ANN401 - httpx's own arguments
        """Send a request to the Connect worker with the stack's login."""
        return httpx.request(method, self.at.connect_url + path, auth=self.at.connect_login, trust_env=False, **more)

    def check_one_more_row(self) -> None:
        """Require that all written data is there, and that a new row is streamed."""
        with closing(self.postgres()) as connection, connection, connection.cursor() as cursor:
            cursor.execute("INSERT INTO kept SELECT max(id) + 1 FROM kept RETURNING id")
            (row,) = cursor.fetchall()[0]
        self.expect(rows=row)

    @RETRIED
    def expect(self, rows: int) -> None:
        """Require that all written data is there, and that the connector has streamed this number of rows."""
        with closing(self.postgres()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM kept")
            assert cursor.fetchone() == (rows,)
        assert self.read(TOPIC) == [b"value"]
        body = self.s3().get_object(Bucket=BUCKET, Key="kept/object")["Body"].read()
        assert body == b"bytes"
        status = self.connect("GET", f"/connectors/{CONNECTOR}/status").json()
        for task in status["tasks"]:
            if task["state"] == "FAILED":  # its database was down; the worker does not restart the task
                self.connect("POST", f"/connectors/{CONNECTOR}/tasks/{task['id']}/restart")
        assert [task["state"] for task in status["tasks"]] == ["RUNNING"]
        assert len(self.read("kept.public.kept")) >= rows

    def read(self, topic: str) -> list[bytes]:
        """Return the committed values of partition 0."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.at.kafka_bootstrap,
                "group.id": "probe",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            values: list[bytes] = []
            while True:
                message = consumer.poll(10)
                assert message is not None, f"{topic} did not answer"
                if message.error():
                    return values
                values.append(message.value() or b"")
        finally:
            consumer.close()


@pytest.fixture(scope="module")
def filled_stack() -> Iterator[Stack]:
    """Run PostgreSQL, Kafka, Connect and S3, with data in each of them."""
    with scratch_home() as home, running_stack(home, NAMES) as started:
        EngineClients(load_endpoints(home)).write()
        yield started


@pytest.fixture(scope="module")
def engine_clients(filled_stack: Stack) -> EngineClients:
    """Return clients of the stack."""
    return EngineClients(load_endpoints(filled_stack.home.path))


def secret_texts(home: Path) -> list[str]:
    """Return the stack's secrets."""
    secrets = load_or_make(home / "secrets.json")
    return [secrets.postgres_password, secrets.debezium_password, secrets.connect_password, secrets.s3_secret_key]
