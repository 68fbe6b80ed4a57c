"""Reads and validates the environments in sizes.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from infra.aws.sizes.size_models import (
    ARN_OR_NAME,
    Athena,
    Buckets,
    Connect,
    Dagster,
    Database,
    Emr,
    Kafka,
    Network,
    Registry,
)

FILE = Path(__file__).parent / "sizes.yaml"
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Prefix = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]


class SizesError(Exception):
    """sizes.yaml or the requested size is not valid; the message names the field and the allowed values."""


class Size(BaseModel):
    """One environment; fields with a default can be omitted in sizes.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[
        str, Field(pattern=r"^[a-z][a-z0-9-]{1,14}$", description="Part of all resource names in the account.")
    ]
    region: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")] = "us-east-1"
    glue_databases: Annotated[tuple[Name, ...], Field(min_length=1)] = ("datalake",)
    """`targets[].database` of the pipelines. The first is Athena's default. Add new ones at the end: CloudFormation
    cannot rename the first to one that exists."""
    pipelines: Annotated[tuple[Name, ...], Field(min_length=1)] = ("northwind",)
    """Each pipeline has its own source connector, worker configuration and alarms."""
    topic_prefixes: Annotated[tuple[Prefix, ...], Field(min_length=1)] = ("msk",)
    """`stream.prefix` of the pipelines: prefixes of the topics that Connect may write and Spark may read."""
    alarm_email: Annotated[str | None, Field(pattern=r"^[^@\s]+@[^@\s]+$")] = None
    freshness_seconds: Annotated[int, Field(ge=60)] = 300
    """The maximum age of the newest heartbeat in the lake."""
    quicksight_principal: Annotated[str | None, Field(pattern=r"^(user|group)/.+$|^arn:aws[a-z-]*:quicksight:.+$")] = (
        None
    )
    """The owner of dashboards: `user/<name>` or `group/<name>` of the account's QuickSight, or an ARN."""
    retained_wal_mib: Annotated[int, Field(ge=64)] = 4096
    network: Network
    database: Database
    kafka: Kafka
    connect: Connect
    emr: Emr
    dagster: Dagster
    buckets: Buckets
    athena: Athena
    registry: Registry | None = None
    hash_salt_secret: Annotated[str | None, Field(pattern=ARN_OR_NAME)] = None
    """The user's secret with the salt of hashed columns: the complete ARN, or the name if this account owns it."""

    @field_validator("glue_databases")
    @classmethod
    def _named_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if repeated := sorted({each for each in value if value.count(each) > 1}):
            raise ValueError(f"{', '.join(repeated)} is in the list more than once: remove the repetition")
        return value

    @model_validator(mode="after")
    def _secret_in_the_region(self) -> Size:
        for field, secret in (("registry.secret", self.registry_secret), ("hash_salt_secret", self.hash_salt_secret)):
            if secret and secret.startswith("arn:") and secret.split(":")[3] != self.region:
                raise ValueError(
                    f"{field} is in {secret.split(':')[3]}, but Dagster, Spark and Connect read secrets in "
                    f"{self.region}: replicate it to this region"
                )
        return self

    @property
    def registry_secret(self) -> str | None:
        """The secret with the schema registry's credentials."""
        return self.registry.secret if self.registry else None

    @property
    def prefix(self) -> str:
        """The prefix of the names of the environment's AWS resources."""
        return f"cdc-lake-{self.name}"


def sizes(file: Path = FILE) -> dict[str, Size]:
    """Return all environments of the file, by name. Raises SizesError."""
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise SizesError(f"Cannot read {file}: {error}. Give a readable YAML file.") from error
    if not isinstance(entries, dict) or not entries:
        raise SizesError(f"Cannot read {file}: it has no environments. Add an entry such as `dev:`, a mapping.")
    return {str(name): _checked(str(name), entry, file) for name, entry in entries.items()}


def size(name: str, file: Path = FILE) -> Size:
    """Return the environment of that name. Raises SizesError."""
    found = sizes(file)
    if name not in found:
        raise SizesError(
            f"Cannot read environment {name!r}: {file} does not have it. Choose one of {', '.join(found)}, or add it."
        )
    return found[name]


def _checked(name: str, entry: object, file: Path) -> Size:
    if not isinstance(entry, dict):
        raise SizesError(
            f"Cannot read environment {name!r} of {file}: it is {entry!r}, not a mapping. Give it the fields that "
            "infra/aws/sizes/sizes.py describes."
        )
    try:
        return Size.model_validate({"name": name, **entry})
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, (name, *fault['loc'])))}: {fault['msg'].removeprefix('Value error, ')}"
            + ("" if fault["type"] == "missing" or isinstance(fault["input"], dict) else f" (it is {fault['input']!r})")
            for fault in error.errors()
        )
        raise SizesError(f"Cannot read environment {name!r} of {file}: {faults}") from None
