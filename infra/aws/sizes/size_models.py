"""The parts of an environment's size, one model for each stack."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

ZONES = 2
_KEY = r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$"
_PLUGIN = r"^arn:aws[a-z-]*:kafkaconnect:[a-z0-9-]+:\d{12}:custom-plugin/[^/@]+/[^/@]+(@\d+)?$"
_INSTANCE = r"^[a-z][a-z0-9]*\.[a-z0-9]+$"
ARN_OR_NAME = r"^(arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]+-[A-Za-z0-9]{6}|[\w/+=.@-]+)$"
_WITHOUT_LOGIN = r"^https?://[^\s/@?#]+(/[^\s@?#]*)?$"
Count = Annotated[int, Field(ge=1)]
Days = Annotated[int, Field(ge=1, le=3650)]


class Part(BaseModel):
    """A part of a size; immutable, and without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Network(Part):
    """The VPC. With fewer NAT gateways than zones, an outage of a gateway's zone also disconnects the other zone."""

    cidr: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+\.\d+/(1[6-9]|2[0-4])$")] = "10.60.0.0/16"
    nat_gateways: Annotated[int, Field(ge=1, le=ZONES)]


class Database(Part):
    """Aurora PostgreSQL, Serverless v2; capacities are ACUs (2 GiB of memory each)."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] = "devdb"
    version: Annotated[str, Field(pattern=r"^1\d\.\d+$")] = "16.9"
    min_capacity: Annotated[float, Field(ge=0.5, le=256, multiple_of=0.5)]
    max_capacity: Annotated[float, Field(ge=1, le=256, multiple_of=0.5)]
    instances: Annotated[
        int, Field(ge=1, le=15, description="The number of instances: one writer, the others readers for failover.")
    ]
    backup_days: Annotated[int, Field(ge=1, le=35)]
    read_by_spark: bool = True
    """Whether Spark may connect to the source, which `cdc-lake verify` requires."""

    @model_validator(mode="after")
    def _ordered(self) -> Database:
        if self.max_capacity < self.min_capacity:
            raise ValueError(f"max_capacity {self.max_capacity} is below min_capacity {self.min_capacity}")
        return self


class Kafka(Part):
    """MSK; with `serverless` the settings of brokers have no effect."""

    kind: Literal["provisioned", "serverless"]
    version: Annotated[str, Field(pattern=r"^\d+\.\d+(\.\d+|\.x)(\.kraft)?$")] = "3.9.x"
    brokers: Annotated[int, Field(ge=ZONES, le=30)] = 2
    broker_type: Annotated[str, Field(pattern=r"^kafka\.[a-z0-9]+\.[a-z0-9]+$")] = "kafka.m7g.large"
    storage_gib: Annotated[int, Field(ge=1, le=16384, description="The storage of each broker in GiB.")] = 100
    min_insync_replicas: Annotated[int, Field(ge=1, le=3)] = 1
    auto_create_topics: bool = True

    @field_validator("broker_type")
    @classmethod
    def _takes_iam(cls, value: str) -> str:
        if value.startswith("kafka.t3."):
            raise ValueError(
                "t3 brokers accept one TCP connection a second with IAM authentication, which Connect and Spark "
                "exceed immediately: use kafka.m7g.large or larger"
            )
        return value

    @model_validator(mode="after")
    def _spread(self) -> Kafka:
        if self.brokers % ZONES:
            raise ValueError(f"cannot spread {self.brokers} brokers over {ZONES} zones: use a multiple of {ZONES}")
        if self.min_insync_replicas >= self.replicas and self.brokers > 1:
            raise ValueError(
                f"min_insync_replicas {self.min_insync_replicas} with {self.replicas} replicas: a broker's restart "
                f"would stop every writer; use at most {self.replicas - 1}"
            )
        return self

    @property
    def replicas(self) -> int:
        """The replicas of each partition."""
        return min(3, self.brokers)


class Connect(Part):
    """The capacity of one source connector on MSK Connect, and its plugin; an MCU is 1 vCPU and 4 GiB."""

    workers: Annotated[int, Field(ge=1, le=10)]
    mcus: Literal[1, 2, 4, 8]
    log_days: Days = 30
    plugin: Annotated[str | None, Field(pattern=_PLUGIN)] = None
    """The ARN that `cdc-lake aws plugins upload` printed, with @<revision> for a revision other than the first."""


class Registry(Part):
    """The user's schema registry, for pipelines in Avro. No stack creates it or its secret."""

    url: Annotated[str, Field(pattern=_WITHOUT_LOGIN)]
    """The URL of its Confluent-compatible API; Apicurio: `https://HOST/apis/ccompat/v7`."""
    converter_url: Annotated[str | None, Field(pattern=_WITHOUT_LOGIN)] = None
    """The URL for the converter in Connect, if it differs; Apicurio: `https://HOST/apis/registry/v2`."""
    secret: Annotated[str | None, Field(pattern=ARN_OR_NAME)] = None
    """The secret with its credentials: the complete ARN, or the name if this account owns it. None: no credentials.

    The secret is a JSON object whose member `password` is the value of the Authorization header.
    """
    converter_member: Annotated[str, Field(pattern=r"^\w+$")] = "password"
    """The secret's member that the converter uses. Confluent's converter takes `user:password`, not the header."""

    @model_validator(mode="after")
    def _member_of_a_secret(self) -> Registry:
        if self.secret is None and self.converter_member != "password":
            raise ValueError(
                f"converter_member is {self.converter_member!r}, but secret is not set: set the secret that contains it"
            )
        return self


class EmrCluster(Part):
    """A permanent cluster with `core_count` to `max_count` nodes in addition to the primary one."""

    primary_type: Annotated[str, Field(pattern=_INSTANCE)]
    core_type: Annotated[str, Field(pattern=_INSTANCE)]
    core_count: Count
    max_count: Count
    python: Annotated[str, Field(pattern=r"^/")] = "/opt/cdc-lake/bin/python"
    """The Python interpreter on the cluster's machines that has the packages of requirements.lock."""
    bootstrap: Annotated[str | None, Field(pattern=_KEY)] = None
    """The key, in the artifacts bucket, of the script that installs `python` on new machines (bootstrap/python.sh)."""

    @model_validator(mode="after")
    def _ordered(self) -> EmrCluster:
        if self.max_count < self.core_count:
            raise ValueError(f"max_count {self.max_count} is below core_count {self.core_count}")
        return self

    @property
    def requirements(self) -> str | None:
        """The key of requirements.lock, which is in the same folder as the script `bootstrap`."""
        return str(PurePosixPath(self.bootstrap).with_name("requirements.lock")) if self.bootstrap else None


class Emr(Part):
    """Spark: an EMR Serverless application, and optionally a cluster."""

    release: Annotated[str, Field(pattern=r"^emr-7\.\d+\.\d+$")] = "emr-7.10.0"
    cluster: EmrCluster | None
    serverless_max_vcpu: Annotated[int, Field(ge=4)]
    serverless_max_memory_gib: Annotated[int, Field(ge=8)]
    idle_minutes: Annotated[int, Field(ge=1, le=10080)] = 15
    writes_topics: bool = False
    """Whether Spark's jobs may write the pipelines' topics, which polling (`source.kind: query`) requires."""
    environment: Annotated[str | None, Field(pattern=_KEY)] = None
    """The key, in the artifacts bucket, of the venv-pack archive with Python for EMR Serverless jobs."""


class Dagster(Part):
    """The size of each of the three services (webserver, daemon, code location) and of the instance's PostgreSQL."""

    image_tag: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$")] = "0.1.0"
    cpu: Literal[256, 512, 1024, 2048, 4096]
    memory_mib: Annotated[int, Field(ge=512, le=30720)]
    storage_class: Annotated[str, Field(pattern=_INSTANCE)]
    storage_gib: Annotated[int, Field(ge=20)] = 20
    storage_multi_az: bool = False
    log_days: Days = 30

    @model_validator(mode="after")
    def _is_offered(self) -> Dagster:
        # Fargate offers 2 to 8 GiB for each vCPU, in whole GiB, up to 30 GiB; also 512 MiB for a quarter vCPU.
        low, high = self.cpu * 2, min(self.cpu * 8, 30720)
        if not low <= self.memory_mib <= high or (self.memory_mib % 1024 and self.memory_mib != 512):
            offered = "512, 1024 or 2048 MiB" if low == 512 else f"{low} to {high} MiB in steps of 1024 MiB"
            raise ValueError(f"memory_mib: use {offered} for {self.cpu} CPU units, not {self.memory_mib} MiB")
        return self


class Buckets(Part):
    """The buckets' lifecycles; `keep_data: false` deletes buckets and databases with their stacks."""

    expire_old_versions_days: Days
    raw_cold_days: Annotated[int, Field(ge=30, description="Age at which raw objects move to Infrequent Access.")] = 90
    expire_work_days: Annotated[
        int, Field(ge=1, le=3650, description="Age at which Athena's results and EMR's logs are deleted.")
    ]
    keep_data: bool


class Athena(Part):
    """The workgroup; a query that would scan more than the limit is cancelled."""

    scan_limit_gib: Count
