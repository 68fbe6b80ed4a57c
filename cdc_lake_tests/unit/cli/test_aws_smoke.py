"""`cdc-lake aws smoke`: whose account, the question, what is printed, and when its exit code is 1.

The whole of it runs in e2e/test_aws_profile.py.
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
from cdc_lake_tests.fakes.account import ACCOUNT, ENVIRONMENT, bind
from cdc_lake_tests.unit.cli.test_demo_command import SUMMARY


class Fake:
    """Stands for the demo's steps and the verification."""

    def __init__(self) -> None:
        self.summary: dict[str, Any] = deepcopy({**SUMMARY, "dashboard": "https://quicksight/northwind"})
        self.error: Exception | None = None
        self.clean = True
        self.runs: list[list[str]] = []
        """The steps that a run found done."""

    def made(self, *arguments: Any) -> Fake:  # noqa: ANN401 - as Demo's
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

    def verified(self, _flow: object, tables: Any, _systems: object, **more: object) -> Iterator[Any]:  # noqa: ANN401
        """See verify_tables()."""
        assert more["apply"] is True, "nobody's sensors carry what is missing"
        for table in tables:
            yield table, SimpleNamespace(clean=self.clean, compared=829, source_rows=829)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """An account whose STS answers, and fakes for all that costs."""
    made = Fake()

    @contextmanager
    def no_instance() -> Iterator[None]:
        yield None

    bind(monkeypatch, tmp_path / "cache")
    for name, value in {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CDC_LAKE_HOME", str(tmp_path))
    monkeypatch.setattr(steps, "Demo", made.made)
    monkeypatch.setattr(instance, "instance", no_instance)
    monkeypatch.setattr(verification, "verify_tables", made.verified)
    deployment = SimpleNamespace(stream_seconds=1.0)
    bound = {"postgres": None, "kafka": None, "connect": None, "store": None, "deployment": deployment}
    monkeypatch.setattr("cdc_lake.profile.resolved", lambda: bound)
    with mock_aws():
        yield made


def smoke(*arguments: str, answer: str | None = None) -> Result:
    """The command, with what is typed when it asks."""
    return CliRunner().invoke(app, ["aws", "smoke", *arguments], input=answer)


def test_it_says_whose_account_it_is_and_what_goes_before_it_asks(fake: Fake) -> None:
    found = smoke(answer="n\n")
    assert found.exit_code == 1
    assert f"account {ACCOUNT}, eu-central-1, as arn:aws:sts::{ACCOUNT}:" in found.stdout
    for name in ("northwind", "bucket lake", ENVIRONMENT["CDC_LAKE_KAFKA_CLUSTER"], "devdb at source.example"):
        assert name in found.stdout
    assert fake.runs == []


def test_another_account_is_refused_before_anything_is_asked(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_QUICKSIGHT_ROLE", "arn:aws:iam::999999999999:role/quicksight")
    found = smoke("--yes")
    assert found.exit_code == 1
    said = str(found.exception)
    assert f": their account is {ACCOUNT}, and" in said
    assert "name account 999999999999. Nothing was changed. Set AWS_PROFILE" in said
    assert fake.runs == []


@pytest.mark.parametrize("profile", ["local", None])
def test_another_profile_is_told_what_it_takes(
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


def test_a_variable_that_is_missing_is_named(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CDC_LAKE_BUCKET")
    assert "CDC_LAKE_BUCKET is not set" in str(smoke("--yes").exception)
    assert fake.runs == []


def test_for_people(fake: Fake) -> None:
    found = smoke(answer="y\n")
    assert found.exit_code == 0, found.output
    said = found.stdout
    assert "2,152" in said
    assert "✓ order 11077 shipped: events 1" in said
    assert "verify: cdc_events: 829 rows compared, equal" in said
    assert "dashboard: https://quicksight/northwind" in said
    assert said[said.index("to clean up:") :].splitlines()[1].startswith("  cdc-lake reset northwind ")
    assert fake.runs == [[]]


def test_json_is_one_object(fake: Fake) -> None:
    found = smoke("--yes", "--json")
    assert found.exit_code == 0
    summary = json.loads(found.stdout)
    assert summary["account"] == ACCOUNT
    assert summary["verify"] == {"cdc_events": {"clean": True, "compared": 829, "source_rows": 829}}
    assert list(summary["seconds"]) == ["load", "verify", "total"]
    assert f"account {ACCOUNT}" in found.stderr
    assert fake.runs == [[]]


def test_a_lake_that_is_not_the_source(fake: Fake) -> None:
    fake.clean = False
    found = smoke("--yes")
    assert found.exit_code == 1
    assert "verify: cdc_events: 829 rows compared, not equal" in found.stdout


def test_a_stage_that_holds_less(fake: Fake) -> None:
    fake.summary["stages"]["lake"] = 828
    assert smoke("--yes", "--json").exit_code == 1


def test_what_is_cut_off_is_gone_on_with(fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "demo.json").write_text('{"reset": {"result": [], "seconds": 1}}')  # of the stack on this machine
    fake.error = ContractError("the connector is FAILED")
    found = smoke("--yes")
    assert found.exception is fake.error
    assert "cdc-lake aws smoke --resume" in found.stdout
    assert "cdc-lake up" not in found.stdout
    fake.error = None
    assert smoke("--yes", "--resume").exit_code == 0
    assert fake.runs == [[], ["load"]]
