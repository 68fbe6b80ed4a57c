"""The way into a stack: endpoints, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.local.artifacts import folder_of
from infra.local.attach import load_endpoints, require_running
from infra.local.errors import ArtifactsMissing, StackDown
from infra.local.ports import PREFERRED
from infra.local.secrets import load_or_make
from infra.local.shell import shell_variables
from infra.local.state import StateFile


def test_a_stack_that_was_never_started(tmp_path: Path) -> None:
    with pytest.raises(StackDown, match=r"was never started: run `cdc-lake up`"):
        load_endpoints(tmp_path)
    with pytest.raises(StackDown, match=r"kafka, s3 are not running .*run `cdc-lake up`"):
        require_running(["kafka", "s3"], tmp_path)


def test_endpoints_of_a_stack_that_is_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.local.attach.java_home", lambda major: Path(f"/java-{major}"))
    StateFile(tmp_path / "stack.json").save_ports(dict(PREFERRED))
    secrets = load_or_make(tmp_path / "secrets.json")
    with pytest.raises(ArtifactsMissing):
        load_endpoints(tmp_path)
    folder_of("spark").mkdir(parents=True)
    endpoints = load_endpoints(tmp_path)
    assert endpoints.kafka_bootstrap == "127.0.0.1:19092"
    assert endpoints.s3_endpoint == "http://127.0.0.1:19000"
    assert endpoints.postgres_password.get_secret_value() == secrets.postgres_password
    assert secrets.postgres_password not in repr(endpoints)

    plain = shell_variables(endpoints, with_secrets=False)
    assert plain["PGPORT"] == "15432"
    assert not {"PGPASSWORD", "AWS_SECRET_ACCESS_KEY"} & set(plain)
    assert shell_variables(endpoints, with_secrets=True)["PGPASSWORD"] == secrets.postgres_password
