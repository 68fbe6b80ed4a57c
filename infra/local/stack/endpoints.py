"""The addresses and credentials of the running stack's engines, which a profile passes to its resources."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, SecretStr

BUCKET = "cdc-lake"
REGION = "us-east-1"
DATABASE = "devdb"

CONNECT_USER = "cdc-lake"
"""The user of Connect's REST interface."""

CAPTURE_ROLE = "debezium"
"""The role that connectors sign in to PostgreSQL as: no superuser; the pipelines' `source` grants it the tables."""


class Endpoints(BaseModel):
    """Addresses and credentials of one embedded stack (all on the loopback interface)."""

    model_config = ConfigDict(frozen=True)

    home: Path
    postgres_host: str
    postgres_port: int
    postgres_user: str
    postgres_password: SecretStr
    postgres_database: str = DATABASE
    kafka_bootstrap: str
    connect_url: str
    connect_user: str = CONNECT_USER
    connect_password: SecretStr
    connect_secrets_file: Path
    """A properties file (mode 0600) that the worker's FileConfigProvider may read; its `postgres.password` is the
    password of `capture_role`."""
    capture_role: str = CAPTURE_ROLE
    s3_endpoint: str
    s3_access_key: str
    s3_secret_key: SecretStr
    bucket: str = BUCKET
    aws_endpoint: str
    """The URL of the local AWS API: Glue and Athena (infra/local/aws_api)."""
    trino_url: str
    region: str = REGION
    java_home: Path
    """A Java 17 for Spark."""
    spark_jars: Path
    """The folder of jars that the jobs add to Spark's own."""

    @property
    def connect_login(self) -> tuple[str, str]:
        """Return user and password of Connect's REST interface."""
        return self.connect_user, self.connect_password.get_secret_value()
