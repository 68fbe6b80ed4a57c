"""`cdc-lake connectors lint`: a line a file, its faults below it, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from cdc_lake.cli.app import app
from cdc_lake.pipeline.stages.topic import CONNECTORS


def test_what_is_shipped_passes() -> None:
    done = CliRunner().invoke(app, ["connectors", "lint"])
    assert done.exit_code == 0, done.output
    assert "s3-sink-confluent.json: ok" in done.output
    assert "debezium-postgres.json: an error policy" in done.output


def test_faults_are_listed(tmp_path: Path) -> None:
    sink = json.loads((CONNECTORS / "s3-sink-aiven.json").read_text())
    del sink["aws.s3.region"]
    slipped, lossy, broken = (tmp_path / name for name in ("slipped.json", "lossy.json", "broken.json"))
    slipped.write_text(json.dumps({**sink, "format.output.type": "csv"}))
    lossy.write_text(json.dumps({**sink, "errors.tolerance": "all"}))
    broken.write_text("{")
    done = CliRunner().invoke(app, ["connectors", "lint", str(slipped), str(lossy), str(broken)])
    assert done.exit_code == 1
    lines = done.output.splitlines()
    assert lines[:3] == [
        "slipped.json: 2 faults",
        "  aws.s3.region is missing",
        "  format.output.type is 'csv'; allowed: jsonl, parquet",
    ]
    assert "passes over records" in done.output
    assert "can't be read as a connector's configuration" in done.output
