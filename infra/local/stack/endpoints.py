"""The addresses and credentials of the running stack's engines, which a profile passes to its resources."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, SecretStr

BUCKET = "cdc-lake"
REGION = "us-east-1"
DATABASE = "devdb"

CONNECT_USER = "cdc-lake"
"""The user of Connect's REST interface."""

CCOMPAT_API = "/apis/ccompat/v7"
CORE_API = "/apis/registry/v2"
REGISTRY_PROPERTIES = "registry.properties"

CAPTURE_ROLE = "debezium"
"""The role that connectors log in to PostgreSQL as. It is not a superuser; `source` assets grant it SELECT."""


class Endpoints(BaseModel):
    """Addresses and credentials of one local stack (all on the loopback interface)."""

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
    registry_url: str | None = None
    """The URL of the schema registry without a path; None if the stack was started by a version without it."""
    registry_authorization: SecretStr | None = None
    """The Authorization header for requests to the registry; None if it was never started."""
    s3_endpoint: str
    s3_access_key: str
    s3_secret_key: SecretStr
    bucket: str = BUCKET
    aws_endpoint: str
    """The URL of the local AWS API: Glue and Athena (infra/local/aws_api)."""
    trino_url: str
    region: str = REGION
    java_home: Path
    """The installation folder of Java 17, for Spark."""
    spark_jars: Path
    """The folder of jars that the jobs need in addition to Spark's own."""

    @property
    def registry_ccompat_url(self) -> str | None:
        """Return the URL of the registry's Confluent-compatible API, from which schemas are read by id."""
        return f"{self.registry_url}{CCOMPAT_API}" if self.registry_url else None

    @property
    def registry_core_url(self) -> str | None:
        """Return the URL of the registry's own API, which Apicurio's converter uses."""
        return f"{self.registry_url}{CORE_API}" if self.registry_url else None

    @property
    def registry_secrets_file(self) -> Path:
        """Return the properties file whose `registry.authorization` is the Authorization header for converters.

        It is in the same folder as `connect_secrets_file`. The registry's first start creates it.
        """
        return self.connect_secrets_file.with_name(REGISTRY_PROPERTIES)

    @property
    def connect_login(self) -> tuple[str, str]:
        """Return user and password of Connect's REST interface."""
        return self.connect_user, self.connect_password.get_secret_value()
