"""`cdc-lake connectors lint`: one line for each file, its faults, what validated it, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner, Result

from cdc_lake.cli.app import app
from cdc_lake.pipeline.connector_config import CONNECTORS
from cdc_lake_tests.unit.resources.fake_connect import FakeConnect, fake_connect, validation
from infra.local.stack.endpoints import Endpoints
from resources.errors import Unreachable

DEBEZIUM = "io.debezium.connector.postgresql.PostgresConnector"
SOURCE = CONNECTORS / "debezium-postgres.json"
VALIDATE = "PUT /connector-plugins/PostgresConnector/config/validate"


@pytest.fixture(autouse=True)
def _no_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a state folder without a stack."""
    monkeypatch.setenv("CDC_LAKE_HOME", str(tmp_path / "home"))


@pytest.fixture
def worker() -> Iterator[FakeConnect]:
    """A fake worker with Debezium's plugin, which accepts the shipped file."""
    with fake_connect() as fake:
        fake.on("GET /connector-plugins", (200, [{"class": DEBEZIUM, "type": "source", "version": "3"}]))
        fake.on(VALIDATE, validation(json.loads(SOURCE.read_text())))
        yield fake


def lint(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["connectors", "lint", *map(str, arguments)])


def test_shipped_files_pass_without_a_worker() -> None:
    done = lint()
    assert done.exit_code == 0, done.output
    assert "s3-sink-confluent.json: matches connectors/settings; not validated by the plugin" in done.stdout
    assert "debezium-postgres.json: only the error policy was checked: no worker is running" in done.stdout
    assert "no Kafka Connect worker is running. Start one with `cdc-lake up`, or name one with" in done.stderr


def test_a_user_without_a_worker_is_refused() -> None:
    found = CliRunner().invoke(app, ["connectors", "lint", "--connect-user", "me"])
    assert found.exit_code == 2
    assert "--connect-user belongs to --connect-url" in " ".join(found.output.replace("│", " ").split())


def test_faults_are_listed(tmp_path: Path) -> None:
    sink = json.loads((CONNECTORS / "s3-sink-aiven.json").read_text())
    del sink["aws.s3.region"]
    slipped, lossy, broken, classless = (tmp_path / f"{name}.json" for name in ("slipped", "lossy", "broken", "none"))
    slipped.write_text(json.dumps({**sink, "format.output.type": "csv"}))
    lossy.write_text(json.dumps({**sink, "errors.tolerance": "all"}))
    broken.write_text("{")
    classless.write_text("{}")
    done = lint(slipped, lossy, broken, classless)
    assert done.exit_code == 1
    lines = done.output.splitlines()
    assert lines[:3] == [
        "slipped.json: 2 errors",
        "  aws.s3.region is missing",
        "  format.output.type is 'csv'; allowed: jsonl, parquet",
    ]
    assert "loses records" in done.output
    assert "as a connector's configuration: " in done.output
    assert lines[lines.index("  connector.class is missing") - 1] == "none.json: 1 error"


def test_a_named_worker_validates_the_files_of_its_plugins(worker: FakeConnect) -> None:
    worker.on(VALIDATE, validation(json.loads(SOURCE.read_text()), {"database.hostname": "refused"}))
    done = lint("--connect-url", worker.url)
    assert done.exit_code == 0, done.output
    assert f"debezium-postgres.json: valid according to the plugin on {worker.url}. Not checked " in done.stdout
    assert "(set by the pipeline): database.hostname\n" in done.stdout
    assert "s3-sink-confluent.json: matches connectors/settings" in done.stdout
    assert done.stderr == ""


def test_errors_of_the_plugin_are_listed(worker: FakeConnect, tmp_path: Path) -> None:
    config = json.loads(SOURCE.read_text())
    invalid = tmp_path / "wrong.json"
    invalid.write_text(json.dumps({**config, "snapshot.mode": "sometimes", "slot.nmae": "s"}))
    worker.on(VALIDATE, validation(config, {"snapshot.mode": "Value must be one of always, initial"}))
    done = lint(invalid, "--connect-url", worker.url)
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "wrong.json: 2 errors",
        "  snapshot.mode: Value must be one of always, initial",
        f"  slot.nmae is not a setting of {DEBEZIUM}; did you mean slot.name?",
    ]


def test_a_missing_plugin_is_reported(worker: FakeConnect) -> None:
    worker.on("GET /connector-plugins", (200, []))
    done = lint(SOURCE, "--connect-url", worker.url)
    assert done.exit_code == 0
    assert f"only the error policy was checked: the worker at {worker.url} does not have the plugin," in done.stdout


def test_an_unreachable_named_worker_is_an_error() -> None:
    with fake_connect() as gone:
        url = gone.url
    done = lint(SOURCE, "--connect-url", url)
    assert isinstance(done.exception, Unreachable)
    assert "--connect-url is the worker's URL" in done.exception.user_message


def test_the_stacks_worker_validates_with_the_stacks_database(
    worker: FakeConnect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoints = Endpoints(
        home=tmp_path,
        postgres_host="127.0.0.1",
        postgres_port=15432,
        postgres_user="postgres",
        postgres_password=SecretStr("not for the worker"),
        kafka_bootstrap="127.0.0.1:19092",
        connect_url=worker.url,
        connect_password=SecretStr("the worker's"),
        connect_secrets_file=tmp_path / "postgres.properties",
        s3_endpoint="http://127.0.0.1:19000",
        s3_access_key="key",
        s3_secret_key=SecretStr("key"),
        aws_endpoint="http://127.0.0.1:15000",
        trino_url="http://127.0.0.1:18080",
        java_home=tmp_path,
        spark_jars=tmp_path,
    )
    monkeypatch.setattr("infra.local.stack.attach.require_running", lambda _names: None)
    monkeypatch.setattr("infra.local.stack.attach.load_endpoints", lambda: endpoints)
    worker.on(VALIDATE, validation(json.loads(SOURCE.read_text()), {"database.hostname": "no role cdc_lake"}))
    done = lint(SOURCE)
    assert done.exit_code == 1, "errors of a real database are faults"
    assert "  database.hostname: no role cdc_lake" in done.stdout
    request = json.loads(worker.bodies[-1])
    assert (request["database.port"], request["database.dbname"]) == ("15432", endpoints.postgres_database)
    assert request["database.user"] == endpoints.capture_role
    assert request["database.password"] == f"${{file:{endpoints.connect_secrets_file}:postgres.password}}"
