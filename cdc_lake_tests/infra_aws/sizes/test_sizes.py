"""Validation of sizes.yaml: which values are rejected, and with which error."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cdc_lake.pipeline.loading import load
from infra.aws.sizes.sizes import FILE, SizesError, size, sizes

ELSEWHERE = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:registry-Ab12Cd"
"""A secret's ARN in another region than that of the environments."""
INCOMPLETE = "arn:aws:secretsmanager:us-east-1:123456789012:secret:registry"


def changed(tmp_path: Path, **changes: object) -> Path:
    """Write sizes.yaml with changed fields of `dev`, given as `part__field=value`; return its path."""
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


def test_there_are_three_environments() -> None:
    assert list(sizes()) == ["dev", "small", "production"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"kafka__broker_type": "kafka.t3.small"},
            "dev.kafka.broker_type: t3 brokers accept one TCP connection a second",
        ),
        ({"kafka__brokers": 3}, "dev.kafka: cannot spread 3 brokers over 2 zones"),
        ({"kafka__min_insync_replicas": 2}, "a broker's restart would stop every writer; use at most 1"),
        ({"kafka__kind": "self-made"}, "dev.kafka.kind: Input should be 'provisioned' or 'serverless'"),
        ({"database__max_capacity": 1, "database__min_capacity": 2}, "max_capacity 1.0 is below min_capacity 2.0"),
        ({"network__nat_gateways": 0}, "dev.network.nat_gateways: Input should be greater than or equal to 1"),
        ({"network__bastion": True}, "dev.network.bastion: Extra inputs are not permitted"),
        (
            {"dagster__memory_mib": 8192},
            "memory_mib: use 1024 to 4096 MiB in steps of 1024 MiB for 512 CPU units, not 8192 MiB",
        ),
        ({"emr__release": "7.10"}, "dev.emr.release: String should match pattern"),
        ({"athena": None}, "dev.athena: Input should be"),
        ({"connect__plugin": "debezium"}, "dev.connect.plugin: String should match pattern"),
        ({"quicksight_principal": "analysts"}, "dev.quicksight_principal: String should match pattern"),
        ({"emr__environment": "s3://bucket/python.tar.gz"}, "dev.emr.environment: String should match pattern"),
        ({"glue_databases": []}, "dev.glue_databases: Tuple should have at least 1 item"),
        ({"glue_databases": ["lake", "moma", "lake"]}, "dev.glue_databases: lake is in the list more than once"),
        ({"registry": {}}, "dev.registry.url: Field required"),
        ({"registry": {"url": "https://user@registry"}}, "dev.registry.url: String should match pattern"),
        ({"registry": {"url": "https://registry", "secret": INCOMPLETE}}, "dev.registry.secret: String should"),
        (
            {"registry": {"url": "https://registry", "converter_member": "user_info"}},
            "dev.registry: converter_member is 'user_info', but secret is not set: set the secret that contains it",
        ),
        (
            {"registry": {"url": "https://registry", "secret": ELSEWHERE}},
            "registry.secret is in eu-west-1, but Dagster, Spark and Connect read secrets in us-east-1",
        ),
        ({"hash_salt_secret": ELSEWHERE}, "hash_salt_secret is in eu-west-1, but Dagster, Spark and Connect read"),
        (
            {"hash_salt_secret": "two words"},  # pragma: allowlist secret
            "dev.hash_salt_secret: String should match pattern",
        ),
        ({"pipelines": ["North wind"]}, "dev.pipelines.0: String should match pattern"),
    ],
)
def test_an_error_names_the_field_and_the_allowed_values(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    file = changed(tmp_path, **changes)
    with pytest.raises(SizesError) as error:
        size("dev", file)
    assert message in str(error.value)
    assert str(error.value).startswith(f"Cannot read environment 'dev' of {file}: ")


def test_a_registrys_secret_is_an_arn_or_a_name(tmp_path: Path) -> None:
    for secret in ("shared/registry", ELSEWHERE.replace("eu-west-1", "us-east-1")):
        found = size("dev", changed(tmp_path, registry={"url": "https://registry/apis/ccompat/v7", "secret": secret}))
        assert found.registry is not None
        assert found.registry.secret == secret


def test_every_environment_has_what_its_pipelines_need() -> None:
    for found in sizes().values():
        for pipeline in map(load, found.pipelines):
            assert {target.database for target in pipeline.spec.targets} <= set(found.glue_databases)
            assert pipeline.spec.stream.prefix in found.topic_prefixes
            assert found.registry is not None or pipeline.spec.stream.registry is None


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    file = tmp_path / "sizes.yaml"
    file.write_text("dev: {}", encoding="utf-8")
    with pytest.raises(SizesError, match=r"dev\.network: Field required; dev\.database: Field required"):
        size("dev", file)


def test_the_error_for_an_unknown_environment_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SizesError, match=r"Cannot read environment 'big': .*Choose one of dev, small, production"):
        size("big", changed(tmp_path))


@pytest.mark.parametrize("content", ["", "[]", "dev: 3", "dev: [", "just words"])
def test_a_file_without_environments_is_rejected(tmp_path: Path, content: str) -> None:
    file = tmp_path / "sizes.yaml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SizesError, match=r"has no environments|Give a readable YAML file|not a mapping"):
        sizes(file)
