"""How large an environment is: one entry of sizes.yaml, checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from infra.aws.sizes.size_models import Athena, Buckets, Connect, Dagster, Database, Emr, Kafka, Network

FILE = Path(__file__).parent / "sizes.yaml"
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Prefix = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]


class SizesError(Exception):
    """sizes.yaml, or what was asked of it, can't be used; the message says which field and what is allowed."""


class Size(BaseModel):
    """One environment. What has a default here is the same in all of them until its entry says otherwise."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{1,14}$", description="Part of every name in the account.")]
    region: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")] = "us-east-1"
    catalog: Annotated[Name, Field(description="Glue's database.")] = "datalake"
    pipelines: Annotated[tuple[Name, ...], Field(min_length=1)] = ("northwind",)
    """Each has a source connector of its own: a worker configuration and an alarm are made for it."""
    topic_prefixes: Annotated[tuple[Prefix, ...], Field(min_length=1)] = ("msk",)
    """`stream.prefix` of the pipelines: the topics that Connect may write and Spark may read begin with one."""
    alarm_email: Annotated[str | None, Field(pattern=r"^[^@\s]+@[^@\s]+$")] = None
    freshness_seconds: Annotated[int, Field(ge=60)] = 300
    """As old as the newest heartbeat in the lake may be."""
    quicksight_principal: Annotated[str | None, Field(pattern=r"^(user|group)/.+$|^arn:aws[a-z-]*:quicksight:.+$")] = (
        None
    )
    """Who owns dashboards: `user/<name>` or `group/<name>` of the account's QuickSight, or an ARN."""
    retained_wal_mib: Annotated[int, Field(ge=64)] = 4096
    network: Network
    database: Database
    kafka: Kafka
    connect: Connect
    emr: Emr
    dagster: Dagster
    buckets: Buckets
    athena: Athena

    @property
    def prefix(self) -> str:
        """What the names of all its resources begin with."""
        return f"cdc-lake-{self.name}"


def sizes(file: Path = FILE) -> dict[str, Size]:
    """Every environment of the file by name. Raises SizesError."""
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise SizesError(f"{file} can't be read as YAML: {error}") from error
    if not isinstance(entries, dict) or not entries:
        raise SizesError(f"{file} has no environments: give it entries such as `dev:`, each a mapping")
    return {str(name): _checked(str(name), entry, file) for name, entry in entries.items()}


def size(name: str, file: Path = FILE) -> Size:
    """The environment of that name. Raises SizesError."""
    found = sizes(file)
    if name not in found:
        raise SizesError(f"there is no environment {name!r} in {file}: choose one of {', '.join(found)}, or add it")
    return found[name]


def _checked(name: str, entry: object, file: Path) -> Size:
    if not isinstance(entry, dict):
        raise SizesError(
            f"{file}: {name} is {entry!r}: it has to be a mapping of the fields in infra/aws/sizes/sizes.py"
        )
    try:
        return Size.model_validate({"name": name, **entry})
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, (name, *fault['loc'])))}: {fault['msg'].removeprefix('Value error, ')}"
            + ("" if fault["type"] == "missing" else f" (it is {fault['input']!r})")
            for fault in error.errors()
        )
        raise SizesError(f"{file}: {faults}") from None
