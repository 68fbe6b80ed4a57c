"""Dagster's `dg` in a copy of the project: it lists the component, scaffolds a valid pipeline and writes the schema."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import dagster as dg
import jsonschema
import pytest
import yaml

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.scaffold import PipelineScaffolder

ROOT = Path(__file__).parents[3]
# All commands run in one process, because loading Dagster takes seconds.
COMMANDS = """
import json, sys
from click.testing import CliRunner
from dagster_dg_cli.cli import cli
def run(*arguments):
    done = CliRunner().invoke(cli, arguments)
    return {"code": done.exit_code, "stdout": done.stdout, "output": done.output, "fault": repr(done.exception)}
print(json.dumps({" ".join(each): run(*each) for each in json.loads(sys.argv[1])}))
"""
SCAFFOLD, AGAIN = "scaffold defs cdc_lake.CdcPipeline shop", "scaffold defs cdc_lake.CdcPipeline my-shop"
# The folder is named: `dg check yaml` without one validates only one file of each component type (dagster-dg-cli 1.13).
CHECK, LIST, SCHEMA = "check yaml cdc_lake/defs/shop", "list components --json", "utils generate-component-schema"


def install(folder: Path) -> None:
    """Copy the project, with the metadata that its installation writes."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(ROOT / "cdc_lake", folder / "cdc_lake", ignore=shutil.ignore_patterns("__pycache__"))
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    metadata = folder / "cdc_lake-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: cdc-lake\nVersion: 0.1.0\n")
    lines = [f"[{group}]\n" + "\n".join(f"{name} = {each[name]}" for name in each) for group, each in points.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines))


def run_dg(folder: Path, *commands: str) -> dict[str, Any]:
    """Run commands of dg in one process; return exit code and output of each."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMMANDS, json.dumps([each.split() for each in commands])],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT}", "VIRTUAL_ENV": sys.prefix},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_dg_refuses_an_unknown_field_and_a_missing_one(tmp_path: Path) -> None:
    install(tmp_path)
    invalid = tmp_path / "cdc_lake" / "defs" / "shop"
    invalid.mkdir()
    (invalid / "defs.yaml").write_text("type: cdc_lake.CdcPipeline\nattributes: {no_such_field: 1}\n")
    check = run_dg(tmp_path, CHECK)[CHECK]
    assert check["code"] == 1
    assert "no_such_field" in check["output"]
    assert "'tables' is a required property" in check["output"]


def test_dg_scaffolds_checks_and_lists_pipelines(tmp_path: Path) -> None:
    install(tmp_path)
    found = run_dg(tmp_path, SCAFFOLD, CHECK, LIST, SCHEMA, AGAIN)
    assert all(found[each]["code"] == 0 for each in (SCAFFOLD, CHECK, LIST, SCHEMA)), found
    assert "cdc_lake.CdcPipeline" in {each["key"] for each in json.loads(found[LIST]["stdout"])["items"]}
    assert [table.name for table in load("shop", tmp_path / "cdc_lake" / "defs").tables] == ["shop"]
    schema = json.loads((tmp_path / ".dg" / "schema.json").read_text())
    assert {"name", "source", "tables"} <= schema["$defs"]["PipelineSpec"]["properties"].keys()
    our_schema = {**schema, "anyOf": [{"$ref": "#/$defs/CdcPipeline"}]}
    for file in (tmp_path / "cdc_lake" / "defs").glob("*/defs.yaml"):
        jsonschema.validate(yaml.safe_load(file.read_text()), our_schema)
    assert found[AGAIN]["code"] == 1
    assert "Cannot scaffold pipeline 'my-shop'" in found[AGAIN]["fault"]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("shop", {"scaffold_format": "python"}, r"Cannot scaffold pipeline shop as python: a pipeline is YAML"),
        ("shop", {"append": True}, r"Cannot scaffold pipeline shop: .*defs.yaml exists"),
        ("cdc_heartbeat", {}, r"Cannot scaffold pipeline 'cdc_heartbeat': tables: .*own table"),
    ],
)
def test_invalid_scaffold_requests_are_rejected(
    tmp_path: Path, name: str, options: dict[str, object], message: str
) -> None:
    request: dict[str, Any] = {
        "scaffold_format": "yaml",
        "append": False,
        "project_root": None,
        "params": None,
        **options,
    }
    scaffold_request = dg.ScaffoldRequest(type_name="cdc_lake.CdcPipeline", target_path=tmp_path / name, **request)
    with pytest.raises(ContractError, match=message):
        PipelineScaffolder().scaffold(scaffold_request)
    assert not (tmp_path / name / "defs.yaml").exists()
