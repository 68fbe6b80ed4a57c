"""`cdc-lake aws smoke`: the account, the confirmation, the output and the exit code.

e2e/test_aws_profile.py runs the whole command.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from cdc_lake import instance
from cdc_lake.cli.app import app
from cdc_lake.contract.errors import ContractError
from cdc_lake.demo import steps
from cdc_lake.pipeline.operations import verification
from cdc_lake_tests.fakes.aws.account import ACCOUNT, ENVIRONMENT, bind
from cdc_lake_tests.unit.cli.demo_summary import SUMMARY
from resources.postgres.resource import Postgres


class Fake:
    """A fake of the demo's steps and of the verification."""

    def __init__(self) -> None:
        self.summary: dict[str, Any] = deepcopy({**SUMMARY, "dashboard": "https://quicksight/northwind"})
        self.error: Exception | None = None
        self.passed = True
        self.runs: list[list[str]] = []
        """The completed steps that each run found in the journal."""

    def start(self, *arguments: Any) -> Fake:  # noqa: ANN401 - same signature as Demo
        """See Demo."""
        self._journal = arguments[3]
        self.runs.append(list(self._journal.seconds()))
        return self

    def run(self) -> dict[str, Any]:
        """See Demo."""
        self._journal.step("load", lambda: 1)
        if self.error is not None:
            raise self.error
        return deepcopy(self.summary)

    def verify_tables(self, _pipeline: object, tables: Any, _systems: object, **more: object) -> Iterator[Any]:  # noqa: ANN401
        """Yield a report for each table, as verify_tables() does."""
        assert more["apply"] is True, "no sensors run, so verification must land and apply itself"
        for table in tables:
            yield table, SimpleNamespace(passed=self.passed, compared=829, source_rows=829)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """An account with moto's STS, and fakes of everything that causes costs."""
    fake_demo = Fake()

    @contextmanager
    def no_instance() -> Iterator[None]:
        yield None

    bind(monkeypatch, tmp_path / "cache")
    for name, value in {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CDC_LAKE_HOME", str(tmp_path))
    monkeypatch.setattr(steps, "Demo", fake_demo.start)
    monkeypatch.setattr(instance, "instance", no_instance)
    monkeypatch.setattr(verification, "verify_tables", fake_demo.verify_tables)
    deployment = SimpleNamespace(stream_seconds=1.0)
    bound = {
        "postgres": Postgres(host="source.example", user="cdc", database="devdb", capture_role=""),
        "kafka": None,
        "connect": None,
        "store": None,
        "deployment": deployment,
    }
    monkeypatch.setattr("cdc_lake.profile.resolved", lambda: bound)
    with mock_aws():
        yield fake_demo


def smoke(*arguments: str, answer: str | None = None) -> Result:
    """Run the command with this answer to its confirmation."""
    return CliRunner().invoke(app, ["aws", "smoke", *arguments], input=answer)


def test_account_and_targets_are_printed_before_the_confirmation(fake: Fake) -> None:
    found = smoke(answer="n\n")
    assert found.exit_code == 1
    assert f"account {ACCOUNT}, eu-central-1, as arn:aws:sts::{ACCOUNT}:" in found.stdout
    for name in ("northwind", "bucket lake", ENVIRONMENT["CDC_LAKE_KAFKA_CLUSTER"], "devdb at source.example"):
        assert name in found.stdout
    assert fake.runs == []


def test_settings_of_another_account_are_rejected_first(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_QUICKSIGHT_ROLE", "arn:aws:iam::999999999999:role/quicksight")
    found = smoke("--yes")
    assert found.exit_code == 1
    output = str(found.exception)
    assert f": they belong to account {ACCOUNT}, but" in output
    assert "CDC_LAKE_QUICKSIGHT_ROLE names account 999999999999. Nothing was changed. Set AWS_PROFILE" in output
    assert fake.runs == []


@pytest.mark.parametrize("profile", ["local", None])
def test_another_profile_is_rejected_with_advice(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, profile: str | None
) -> None:
    if profile is None:
        monkeypatch.delenv("CDC_LAKE_PROFILE")
    else:
        monkeypatch.setenv("CDC_LAKE_PROFILE", profile)
    found = smoke("--yes")
    assert "CDC_LAKE_PROFILE is 'local'. Set CDC_LAKE_PROFILE=aws and the variables of docs/aws.md" in str(
        found.exception
    )
    assert fake.runs == []


def test_a_missing_variable_is_named(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CDC_LAKE_BUCKET")
    assert "CDC_LAKE_BUCKET is not set" in str(smoke("--yes").exception)
    assert fake.runs == []


def test_the_default_output_is_readable_text(fake: Fake) -> None:
    found = smoke(answer="y\n")
    assert found.exit_code == 0, found.output
    output = found.stdout
    assert "2,152" in output
    assert "✓ order 11077 shipped: events 1" in output
    assert "verify: cdc_events: 829 rows compared, equal" in output
    assert "dashboard: https://quicksight/northwind" in output
    assert output[output.index("to clean up:") :].splitlines()[1].startswith("  cdc-lake reset northwind ")
    assert fake.runs == [[]]


def test_json_output_is_one_object(fake: Fake) -> None:
    found = smoke("--yes", "--json")
    assert found.exit_code == 0
    summary = json.loads(found.stdout)
    assert summary["account"] == ACCOUNT
    assert summary["verify"] == {"cdc_events": {"clean": True, "compared": 829, "source_rows": 829}}
    assert list(summary["seconds"]) == ["load", "verify", "total"]
    assert f"account {ACCOUNT}" in found.stderr
    assert fake.runs == [[]]


def test_a_failed_verification_exits_with_1(fake: Fake) -> None:
    fake.passed = False
    found = smoke("--yes")
    assert found.exit_code == 1
    assert "verify: cdc_events: 829 rows compared, not equal" in found.stdout


def test_a_stage_with_fewer_rows_exits_with_1(fake: Fake) -> None:
    fake.summary["tables"]["cdc_events"]["stages"]["lake"] = 828
    assert smoke("--yes", "--json").exit_code == 1


def test_an_interrupted_smoke_test_can_be_resumed(fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "demo.json").write_text('{"reset": {"result": [], "seconds": 1}}')  # the journal of the local stack
    fake.error = ContractError("the connector is FAILED")
    found = smoke("--yes")
    assert found.exception is fake.error
    assert "cdc-lake aws smoke --resume" in found.stdout
    assert "cdc-lake up" not in found.stdout
    fake.error = None
    assert smoke("--yes", "--resume").exit_code == 0
    assert fake.runs == [[], ["load"]]


def test_no_resume_starts_a_new_journal(fake: Fake) -> None:
    for _ in range(2):
        assert smoke("--yes", "--no-resume").exit_code == 0
    assert fake.runs == [[], []]
