"""The environment of the aws profile: its variables, and the jars that EMR needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.artifacts.artifacts import AWS_MODULES, folder_of

ACCOUNT = "123456789012"
ENVIRONMENT = {
    "CDC_LAKE_PROFILE": "aws",
    "AWS_REGION": "eu-central-1",
    "CDC_LAKE_BUCKET": "lake",
    "CDC_LAKE_WORK_BUCKET": "work",
    "CDC_LAKE_ARTIFACTS_BUCKET": "artifacts",
    "CDC_LAKE_SOURCE_HOST": "source.example",
    "CDC_LAKE_SOURCE_DATABASE": "devdb",
    "CDC_LAKE_SOURCE_SECRET": f"arn:aws:secretsmanager:eu-central-1:{ACCOUNT}:secret:source-Ab12Cd",
    "CDC_LAKE_KAFKA_CLUSTER": f"arn:aws:kafka:eu-central-1:{ACCOUNT}:cluster/lake/0-1",
    "CDC_LAKE_CONNECT_ROLE": f"arn:aws:iam::{ACCOUNT}:role/connect",
    "CDC_LAKE_CONNECT_LOG_GROUP": "/cdc-lake/connect",
    "CDC_LAKE_CONNECT_SUBNETS": "subnet-1, subnet-2",
    "CDC_LAKE_CONNECT_GROUPS": "sg-1",
    "CDC_LAKE_CONNECT_PLUGIN": f"arn:aws:kafkaconnect:eu-central-1:{ACCOUNT}:custom-plugin/debezium/0-1@2",
    "CDC_LAKE_CONNECT_WORKER_NORTHWIND": f"arn:aws:kafkaconnect:eu-central-1:{ACCOUNT}:worker-configuration/n/0-1",
    "CDC_LAKE_EMR_APPLICATION": "00f1",
    "CDC_LAKE_EMR_JOB_ROLE": f"arn:aws:iam::{ACCOUNT}:role/jobs",
    "CDC_LAKE_CATALOG": "datalake",
    "CDC_LAKE_ATHENA_WORKGROUP": "cdc-lake-dev",
    "CDC_LAKE_QUICKSIGHT_ROLE": f"arn:aws:iam::{ACCOUNT}:role/quicksight",
    "CDC_LAKE_QUICKSIGHT_PRINCIPAL": "group/analysts",
}


def bind(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Set the variables, and write exactly the files that `cdc-lake setup --aws` downloads."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CDC_LAKE_CACHE", str(cache))
    for module in AWS_MODULES:
        folder_of(module).mkdir(parents=True)
    (folder_of("msk-iam") / "aws-msk-iam-auth-2-all.jar").touch()
