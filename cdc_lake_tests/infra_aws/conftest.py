"""Synthesized environments for tests of the CDK application. Without CDK (`make infra`), they are not collected."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.aws.sizes.size_models import EmrCluster, Registry
from infra.aws.sizes.sizes import Size, size

HAS_CDK = importlib.util.find_spec("aws_cdk") is not None
collect_ignore_glob = [] if HAS_CDK else ["test_*.py", "*/test_*.py"]
SIZES = ("dev", "small", "production")
CREDENTIALS = "shared/registry"
"""The name of the secret with the credentials of REGISTRY."""
SALT = "shared/salt"
"""The name of the secret with the salt of hashed columns."""
REGISTRY = Registry(
    url="https://registry.example.com/apis/ccompat/v7",
    converter_url="https://registry.example.com/apis/registry/v2",
    secret=CREDENTIALS,
    converter_member="user_info",
)
PLUGIN = "arn:aws:kafkaconnect:us-east-1:123456789012:custom-plugin/debezium-0a1b/0-1@2"


@dataclass(frozen=True)
class Synthesized:
    """An environment's CloudFormation templates, by the stack's name: `network`, `database`…"""

    size: Size
    templates: dict[str, dict[str, Any]]
    needs: dict[str, set[str]]
    """For each stack, the stacks that must be deployed before it."""

    def of(self, part: str, kind: str) -> dict[str, dict[str, Any]]:
        """Return the properties of a stack's resources of a type, by logical id."""
        return {
            name: resource.get("Properties", {})
            for name, resource in self.templates[part]["Resources"].items()
            if resource["Type"] == kind
        }

    def one(self, part: str, kind: str) -> dict[str, Any]:
        """Return the properties of the only resource of a type."""
        [found] = self.of(part, kind).values()
        return found

    def resources(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield every resource of every stack: `<stack>/<logical id>`, type, template."""
        for part, template in self.templates.items():
            for name, resource in template["Resources"].items():
                yield f"{part}/{name}", resource["Type"], resource


def synthesize(chosen: Size, folder: Path) -> Synthesized:
    """Synthesize the templates of an environment."""
    from infra.aws.app import application, build

    app = application(folder)
    build(app, chosen)
    app.synth()
    found = {
        path.name.removesuffix(".template.json").removeprefix(f"{chosen.prefix}-"): json.loads(path.read_text())
        for path in folder.glob("*.template.json")
    }
    artifacts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["artifacts"]
    needs = {
        part: {
            need.removeprefix(f"{chosen.prefix}-")
            for need in artifacts[f"{chosen.prefix}-{part}"]["dependencies"]
            if not need.endswith(".assets")
        }
        for part in found
    }
    return Synthesized(chosen, found, needs)


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Synthesized]:
    """Return every environment of sizes.yaml, synthesized."""
    return {name: synthesize(size(name), tmp_path_factory.mktemp(name)) for name in SIZES}


@pytest.fixture(params=SIZES)
def environment(request: pytest.FixtureRequest, environments: dict[str, Synthesized]) -> Synthesized:
    """Return each environment, one per test."""
    return environments[request.param]


@pytest.fixture
def dev(environments: dict[str, Synthesized]) -> Synthesized:
    """Return the smallest environment."""
    return environments["dev"]


@pytest.fixture
def production(environments: dict[str, Synthesized]) -> Synthesized:
    """Return the largest environment."""
    return environments["production"]


@pytest.fixture(scope="session")
def opposite_of_dev(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """Return an environment with the opposite of every choice in `dev`."""
    base = size("dev")
    kafka = base.kafka.model_copy(update={"kind": "serverless"})
    database = base.database.model_copy(update={"read_by_spark": False})
    cluster = EmrCluster(
        primary_type="m6g.xlarge",
        core_type="r6g.xlarge",
        core_count=1,
        max_count=1,
        python="/opt/ours/bin/python",
        bootstrap="python/install.sh",
    )
    chosen = base.model_copy(
        update={
            "name": "variant",
            "connect": base.connect.model_copy(update={"plugin": PLUGIN}),
            "emr": base.emr.model_copy(
                update={"environment": "python/environment.tar.gz", "cluster": cluster, "writes_topics": True}
            ),
            "quicksight_principal": "group/analysts",
            "kafka": kafka,
            "database": database,
            "pipelines": ("northwind", "pagila_query"),
            "topic_prefixes": ("msk", "pagila"),
            "glue_databases": ("datalake", "pagila_cow", "pagila_mor"),
            "registry": REGISTRY,
            "hash_salt_secret": SALT,
            "alarm_email": "someone@example.com",
        }
    )
    return synthesize(chosen, tmp_path_factory.mktemp("variant"))
