"""Endpoints of a stack, and errors if it was not started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra.artifacts.artifacts import folder_of
from infra.errors import ArtifactsMissing, StackDown
from infra.local.shell_variables import shell_variables
from infra.local.stack.attach import load_endpoints, require_running
from infra.local.stack.ports import PREFERRED
from infra.local.stack.stack_secrets import load, load_or_make
from infra.local.stack.stack_state import StateFile


def test_an_unstarted_stack_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StackDown, match=r"was never started\. Run `cdc-lake up`"):
        load_endpoints(tmp_path)
    with pytest.raises(StackDown, match=r"kafka, s3 are not running\. Run `cdc-lake up`"):
        require_running(["kafka", "s3"], tmp_path)


def test_endpoints_of_a_stopped_stack_are_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.local.stack.attach.java_home", lambda major: Path(f"/java-{major}"))
    StateFile(tmp_path / "stack.json").save_ports(dict(PREFERRED))
    secrets = load_or_make(tmp_path / "secrets.json")
    with pytest.raises(ArtifactsMissing):
        load_endpoints(tmp_path)
    folder_of("spark").mkdir(parents=True)
    endpoints = load_endpoints(tmp_path)
    assert endpoints.kafka_bootstrap == "127.0.0.1:19092"
    assert endpoints.s3_endpoint == "http://127.0.0.1:19000"
    assert endpoints.postgres_password.get_secret_value() == secrets.postgres_password
    assert endpoints.connect_login == ("cdc-lake", secrets.connect_password)
    assert endpoints.registry_ccompat_url == "http://127.0.0.1:18081/apis/ccompat/v7"
    assert endpoints.registry_core_url == "http://127.0.0.1:18081/apis/registry/v2"
    assert endpoints.registry_authorization is None
    assert not any(secret in repr(endpoints) for secret in (secrets.postgres_password, secrets.connect_password))

    plain = shell_variables(endpoints, with_secrets=False)
    assert plain["PGPORT"] == "15432"
    assert plain["CONNECT_USER"] == "cdc-lake"
    assert not {"PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "CONNECT_PASSWORD"} & set(plain)
    with_secrets = shell_variables(endpoints, with_secrets=True)
    assert (with_secrets["PGPASSWORD"], with_secrets["CONNECT_PASSWORD"]) == (
        secrets.postgres_password,
        secrets.connect_password,
    )


def test_a_stack_of_an_earlier_release_must_be_restarted(tmp_path: Path) -> None:
    StateFile(tmp_path / "stack.json").save_ports(dict(PREFERRED))
    earlier = {"postgres_password": "p", "s3_access_key": "a", "s3_secret_key": "s"}
    (tmp_path / "secrets.json").write_text(json.dumps(earlier))
    with pytest.raises(StackDown, match=r"lacks connect_password, debezium_password\. Run `cdc-lake down`"):
        load_endpoints(tmp_path)
    secrets = load_or_make(tmp_path / "secrets.json")  # like `cdc-lake up`
    assert (secrets.postgres_password, secrets.s3_access_key, secrets.s3_secret_key) == ("p", "a", "s")
    assert load(tmp_path / "secrets.json") == secrets
