"""Synthesized environments for tests of the CDK application, which only `make infra` installs."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.aws.sizes.size_models import EmrCluster
from infra.aws.sizes.sizes import Size, size

HAS_CDK = importlib.util.find_spec("aws_cdk") is not None
collect_ignore_glob = [] if HAS_CDK else ["test_*.py"]
SIZES = ("dev", "small", "production")
PLUGIN = "arn:aws:kafkaconnect:us-east-1:123456789012:custom-plugin/debezium-0a1b/0-1@2"


@dataclass(frozen=True)
class Synthesized:
    """An environment's templates by the stack's part: `network`, `database`…"""

    size: Size
    templates: dict[str, dict[str, Any]]
    needs: dict[str, set[str]]
    """The stacks that each has to be deployed after."""

    def of(self, part: str, kind: str) -> dict[str, dict[str, Any]]:
        """The properties of a stack's resources of a kind, by logical id."""
        return {
            name: resource.get("Properties", {})
            for name, resource in self.templates[part]["Resources"].items()
            if resource["Type"] == kind
        }

    def one(self, part: str, kind: str) -> dict[str, Any]:
        """The properties of the one resource of its kind."""
        [found] = self.of(part, kind).values()
        return found

    def resources(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Every resource of every stack: where it is, its type, the whole of it."""
        for part, template in self.templates.items():
            for name, resource in template["Resources"].items():
                yield f"{part}/{name}", resource["Type"], resource


def synthesize(chosen: Size, folder: Path) -> Synthesized:
    """The templates of an environment."""
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
    """Every environment of sizes.yaml."""
    return {name: synthesize(size(name), tmp_path_factory.mktemp(name)) for name in SIZES}


@pytest.fixture(params=SIZES)
def environment(request: pytest.FixtureRequest, environments: dict[str, Synthesized]) -> Synthesized:
    """Each environment in turn."""
    return environments[request.param]


@pytest.fixture
def dev(environments: dict[str, Synthesized]) -> Synthesized:
    """The smallest."""
    return environments["dev"]


@pytest.fixture
def production(environments: dict[str, Synthesized]) -> Synthesized:
    """The largest."""
    return environments["production"]


@pytest.fixture(scope="session")
def variant(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """An environment with everything chosen the other way round."""
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
            "emr": base.emr.model_copy(update={"environment": "python/environment.tar.gz", "cluster": cluster}),
            "quicksight_principal": "group/analysts",
            "kafka": kafka,
            "database": database,
            "pipelines": ("northwind", "pagila_query"),
            "topic_prefixes": ("msk", "pagila"),
            "alarm_email": "someone@example.com",
        }
    )
    return synthesize(chosen, tmp_path_factory.mktemp("variant"))
