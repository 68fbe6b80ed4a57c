"""The application: its stacks, their order of deployment, and its errors."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cdc_lake_tests.infra_aws.conftest import Synthesized
from infra.aws import app

STACKS = {
    "alarms",
    "catalog",
    "connect",
    "dagster",
    "database",
    "events",
    "network",
    "quicksight",
    "spark",
    "storage",
    "streaming",
}


def test_every_environment_has_the_documented_stacks(environment: Synthesized) -> None:
    assert set(environment.templates) == STACKS


def test_the_documented_order_of_deployment_works(environment: Synthesized) -> None:
    page = (Path(str(app.__file__)).parents[2] / "docs" / "infrastructure.md").read_text(encoding="utf-8")
    table = page.partition("## The stacks, in the order of deployment")[2].partition("## Deploying")[0]
    order = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert set(order) == STACKS
    assert environment.needs["dagster"] >= {"network", "storage", "streaming"}, (
        "the dependencies are not read correctly from the manifest"
    )
    for place, part in enumerate(order):
        assert environment.needs[part] <= set(order[:place]), part


def test_there_are_no_lambda_functions_and_custom_resources(environment: Synthesized) -> None:
    kinds = {kind for _, kind, _ in environment.resources()}
    assert [
        kind for kind in kinds if kind.startswith(("AWS::Lambda::", "Custom::", "AWS::CloudFormation::Custom"))
    ] == []


def test_resources_are_tagged_with_project_and_environment(environment: Synthesized) -> None:
    bucket = next(iter(environment.of("storage", "AWS::S3::Bucket").values()))
    tags = {tag["Key"]: tag["Value"] for tag in bucket["Tags"]}
    assert tags == {"environment": environment.size.name, "project": "cdc-lake"}


def test_cdk_synthesizes_the_same_application(tmp_path: Path) -> None:
    folder = Path(str(app.__file__)).parent
    command = json.loads((folder / "cdk.json").read_text(encoding="utf-8"))["app"].split()
    assert command[0] == "../../.venv/bin/python", "the environment that make creates, relative to cdk.json"
    # As `cdk synth -c size=small` runs the application.
    variables = {"CDK_OUTDIR": str(tmp_path), "CDK_CONTEXT_JSON": json.dumps({"size": "small"})}
    subprocess.run([sys.executable, *command[1:]], cwd=folder, env=os.environ | variables, check=True)
    found = {path.name.removesuffix(".template.json") for path in tmp_path.glob("*.template.json")}
    assert found == {f"cdc-lake-small-{part}" for part in STACKS}


def test_production_stacks_have_termination_protection(tmp_path: Path) -> None:
    def protected(name: str) -> set[bool]:
        assert app.main(["--size", name, "--out", str(tmp_path / name)]) == 0
        artifacts = json.loads((tmp_path / name / "manifest.json").read_text())["artifacts"].values()
        stacks = [each for each in artifacts if each["type"] == "aws:cloudformation:stack"]
        return {each["properties"].get("terminationProtection", False) for each in stacks}

    assert (protected("dev"), protected("production")) == ({False}, {True})


def test_an_unknown_size_is_an_error_that_names_the_known_ones(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert app.main(["--size", "huge", "--out", str(tmp_path)]) == 2
    assert "Cannot read environment 'huge': " in capsys.readouterr().err
