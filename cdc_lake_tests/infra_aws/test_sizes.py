"""Environments: what is refused, and what the error says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from infra.aws.sizes.sizes import FILE, SizesError, size, sizes


def changed(tmp_path: Path, **changes: object) -> Path:
    """sizes.yaml with fields of `dev` changed: `part__field=value`."""
    entries = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    for name, value in changes.items():
        part, _, field = name.partition("__")
        if field:
            entries["dev"][part][field] = value
        else:
            entries["dev"][part] = value
    file = tmp_path / "sizes.yaml"
    file.write_text(yaml.safe_dump(entries, sort_keys=False), encoding="utf-8")
    return file


def test_there_are_three() -> None:
    assert list(sizes()) == ["dev", "small", "production"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"kafka__broker_type": "kafka.t3.small"},
            "dev.kafka.broker_type: t3 brokers accept one TCP connection a second",
        ),
        ({"kafka__brokers": 3}, "dev.kafka: brokers 3 can't be spread over 2 zones"),
        ({"kafka__min_insync_replicas": 2}, "a broker's restart would stop every writer; allowed is at most 1"),
        ({"kafka__kind": "self-made"}, "dev.kafka.kind: Input should be 'provisioned' or 'serverless'"),
        ({"database__max_capacity": 1, "database__min_capacity": 2}, "max_capacity 1.0 is below min_capacity 2.0"),
        ({"network__nat_gateways": 0}, "dev.network.nat_gateways: Input should be greater than or equal to 1"),
        ({"network__bastion": True}, "dev.network.bastion: Extra inputs are not permitted"),
        ({"dagster__memory_mib": 8192}, "Fargate has no 8192 MiB for 512 units: 1024 to 4096, whole GiB"),
        ({"emr__release": "7.10"}, "dev.emr.release: String should match pattern"),
        ({"athena": None}, "dev.athena: Input should be"),
        ({"connect__plugin": "debezium"}, "dev.connect.plugin: String should match pattern"),
        ({"quicksight_principal": "analysts"}, "dev.quicksight_principal: String should match pattern"),
        ({"emr__environment": "s3://bucket/python.tar.gz"}, "dev.emr.environment: String should match pattern"),
        ({"pipelines": ["North wind"]}, "dev.pipelines.0: String should match pattern"),
    ],
)
def test_an_error_names_the_field_and_what_is_allowed(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    file = changed(tmp_path, **changes)
    with pytest.raises(SizesError) as error:
        size("dev", file)
    assert said in str(error.value)
    assert str(error.value).startswith(f"{file}: ")


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    file = tmp_path / "sizes.yaml"
    file.write_text("dev: {}", encoding="utf-8")
    with pytest.raises(SizesError, match=r"dev\.network: Field required; dev\.database: Field required"):
        size("dev", file)


def test_an_unknown_environment_is_said_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(SizesError, match=r"no environment 'big'.*choose one of dev, small, production"):
        size("big", changed(tmp_path))


@pytest.mark.parametrize("content", ["", "[]", "dev: 3", "dev: [", "just words"])
def test_a_file_that_is_no_such_file(tmp_path: Path, content: str) -> None:
    file = tmp_path / "sizes.yaml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SizesError, match=r"has no environments|can't be read as YAML|it has to be a mapping"):
        sizes(file)
