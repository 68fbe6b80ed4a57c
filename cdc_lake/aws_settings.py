"""The settings of the aws profile, read from environment variables. infra/aws sets those whose values it knows.

docs/aws.md describes each variable.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from resources.deployment import RECORD_BYTES
from resources.errors import ResourceError

_WORKER = "CDC_LAKE_CONNECT_WORKER_"
"""The prefix of the variables that contain the ARN of an MSK Connect worker configuration, one for each pipeline. The
pipeline's name in capitals follows the prefix.
"""

_MSK_CONNECT = tuple(f"CDC_LAKE_CONNECT_{name}" for name in ("ROLE", "LOG_GROUP", "SUBNETS", "GROUPS", "PLUGIN"))


def _split(text: object) -> object:
    return [part.strip() for part in text.split(",") if part.strip()] if isinstance(text, str) else text


CommaSeparatedList = Annotated[list[str], BeforeValidator(_split)]
"""A list of strings, read from comma-separated text."""


def _pairs(text: object) -> object:
    if not isinstance(text, str):
        return text
    pairs = [each.partition("=") for each in text.split(",") if each.strip()]
    if any(not equals for _, equals, _ in pairs):
        raise ValueError(f"{text!r} does not have the form name=value,name=value")
    return {name.strip(): value.strip() for name, _, value in pairs}


Tags = Annotated[dict[str, str], BeforeValidator(_pairs)]
"""A dict of strings, read from text such as `name=value,name=value`."""


class AwsSettings(BaseModel):
    """The environment variables of the aws profile; none of them contains a secret."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    region: str = Field(alias="AWS_REGION")
    environment: str = Field(default="", alias="CDC_LAKE_ENVIRONMENT")
    bucket: str = Field(alias="CDC_LAKE_BUCKET")
    work_bucket: str = Field(alias="CDC_LAKE_WORK_BUCKET")
    artifacts_bucket: str = Field(alias="CDC_LAKE_ARTIFACTS_BUCKET")
    events_queue: str = Field(default="", alias="CDC_LAKE_EVENTS_QUEUE")
    source_host: str = Field(alias="CDC_LAKE_SOURCE_HOST")
    source_port: int = Field(default=5432, alias="CDC_LAKE_SOURCE_PORT")
    source_database: str = Field(alias="CDC_LAKE_SOURCE_DATABASE")
    source_secret: str = Field(alias="CDC_LAKE_SOURCE_SECRET")
    password_reference: str = Field(default="", alias="CDC_LAKE_CONNECT_PASSWORD_REFERENCE")
    capture_role: str = Field(default="", alias="CDC_LAKE_CAPTURE_ROLE")
    hash_salt_secret: str = Field(default="", alias="CDC_LAKE_HASH_SALT_SECRET")
    kafka_cluster: str = Field(alias="CDC_LAKE_KAFKA_CLUSTER")
    kafka_security: Literal["plaintext", "iam"] = Field(default="iam", alias="CDC_LAKE_KAFKA_SECURITY")
    registry_url: str = Field(default="", alias="CDC_LAKE_REGISTRY_URL")
    registry_secret: str = Field(default="", alias="CDC_LAKE_REGISTRY_SECRET")
    registry_converter_url: str = Field(default="", alias="CDC_LAKE_REGISTRY_CONVERTER_URL")
    registry_reference: str = Field(default="", alias="CDC_LAKE_CONNECT_REGISTRY_REFERENCE")
    kafka_record_bytes: int = Field(default=RECORD_BYTES, gt=0, alias="CDC_LAKE_KAFKA_RECORD_BYTES")
    connect_url: str = Field(default="", alias="CDC_LAKE_CONNECT_URL")
    connect_user: str = Field(default="", alias="CDC_LAKE_CONNECT_USER")
    connect_role: str = Field(alias="CDC_LAKE_CONNECT_ROLE")
    connect_log_group: str = Field(alias="CDC_LAKE_CONNECT_LOG_GROUP")
    connect_subnets: CommaSeparatedList = Field(alias="CDC_LAKE_CONNECT_SUBNETS")
    connect_groups: CommaSeparatedList = Field(alias="CDC_LAKE_CONNECT_GROUPS")
    connect_workers: int = Field(default=1, alias="CDC_LAKE_CONNECT_WORKERS")
    connect_mcus: int = Field(default=1, alias="CDC_LAKE_CONNECT_MCUS")
    connect_max_workers: int | None = Field(default=None, ge=1, alias="CDC_LAKE_CONNECT_MAX_WORKERS")
    connect_tags: Tags = Field(default={}, alias="CDC_LAKE_CONNECT_TAGS")
    connect_plugin: str = Field(alias="CDC_LAKE_CONNECT_PLUGIN")
    worker_configurations: dict[str, str]
    """ARN of the MSK Connect worker configuration, by pipeline."""
    emr_application: str = Field(default="", alias="CDC_LAKE_EMR_APPLICATION")
    emr_cluster: str = Field(default="", alias="CDC_LAKE_EMR_CLUSTER")
    emr_job_role: str = Field(default="", alias="CDC_LAKE_EMR_JOB_ROLE")
    emr_python: str = Field(default="/opt/cdc-lake/bin/python", alias="CDC_LAKE_EMR_PYTHON")
    emr_environment: str = Field(default="", alias="CDC_LAKE_EMR_ENVIRONMENT")
    emr_more_jars: CommaSeparatedList = Field(default=[], alias="CDC_LAKE_EMR_MORE_JARS")
    catalog: str = Field(alias="CDC_LAKE_CATALOG")
    athena_workgroup: str = Field(alias="CDC_LAKE_ATHENA_WORKGROUP")
    athena_usd_per_tb: float = Field(default=5.0, ge=0, alias="CDC_LAKE_ATHENA_USD_PER_TB")
    quicksight_role: str = Field(alias="CDC_LAKE_QUICKSIGHT_ROLE")
    quicksight_principal: str = Field(alias="CDC_LAKE_QUICKSIGHT_PRINCIPAL")
    quicksight_pause_seconds: float | None = Field(default=None, alias="CDC_LAKE_QUICKSIGHT_PAUSE_SECONDS")
    snapshot_seconds: float = Field(default=86_400.0, gt=0, alias="CDC_LAKE_SNAPSHOT_SECONDS")
    poll_seconds: float = Field(default=10.0, gt=0, alias="CDC_LAKE_POLL_SECONDS")

    @property
    def account_id(self) -> str:
        """The id of the AWS account, taken from the ARN of the QuickSight role."""
        return self.quicksight_role.split(":")[4]

    @model_validator(mode="before")
    @classmethod
    def _msk_connect_is_optional(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Require the variables of MSK Connect only if no other Connect worker is configured."""
        return {**dict.fromkeys(_MSK_CONNECT, ""), **given} if given.get("CDC_LAKE_CONNECT_URL") else given

    @model_validator(mode="after")
    def _require_consistent(self) -> Self:
        if not self.emr_cluster and not (self.emr_application and self.emr_job_role):
            raise ValueError(
                "EMR is not configured: set CDC_LAKE_EMR_CLUSTER, or CDC_LAKE_EMR_APPLICATION and CDC_LAKE_EMR_JOB_ROLE"
            )
        if self.quicksight_role.count(":") < 5:
            raise ValueError(f"CDC_LAKE_QUICKSIGHT_ROLE is {self.quicksight_role!r}, which is not the ARN of a role")
        return self

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> AwsSettings:
        """Read the settings from the variables. Raises a ResourceError that names each missing or invalid variable."""
        workers = {
            name.removeprefix(_WORKER).lower(): value for name, value in environment.items() if name.startswith(_WORKER)
        }
        try:
            return cls.model_validate({**environment, "worker_configurations": workers})
        except ValidationError as error:
            faults = "; ".join(_fault(each) for each in error.errors())
            raise ResourceError(
                f"Cannot use the aws profile: {faults}.", "Set the variables that docs/aws.md describes."
            ) from None


def _fault(error: Any) -> str:  # noqa: ANN401 - pydantic's own mapping
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"{name} is not set"
    text = str(error["msg"]).removeprefix("Value error, ")
    return f"{name}: {text}" if name else text
