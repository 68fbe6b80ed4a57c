"""Files of a state folder: permissions, damage, atomic writes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from cdc_lake.demo.journal import Journal
from infra.errors import StackError
from infra.files import write_atomic
from infra.local.stack.stack_secrets import load_or_make
from infra.local.stack.stack_state import ProcessRecord, StackState, StateFile
from infra.local.stack.state_folder import StackHome, find_home


def mode(path: Path) -> int:
    """Return the permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_private_random_and_kept(tmp_path: Path) -> None:
    first = load_or_make(tmp_path / "a.json")
    assert mode(tmp_path / "a.json") == 0o600
    assert load_or_make(tmp_path / "a.json") == first
    assert load_or_make(tmp_path / "b.json") != first
    assert len(first.postgres_password) >= 32


def test_permissions_of_secrets_are_restored(tmp_path: Path) -> None:
    load_or_make(tmp_path / "a.json")
    (tmp_path / "a.json").chmod(0o644)
    load_or_make(tmp_path / "a.json")
    assert mode(tmp_path / "a.json") == 0o600


def test_damaged_secrets_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(StackError, match=r"a\.json: it is not valid"):
        load_or_make(tmp_path / "a.json")


@pytest.mark.parametrize("text", ["", "{", '{"ports": {"kafka": "x"}}', "\udcff"])
def test_a_damaged_state_file_reads_as_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / "stack.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert StateFile(tmp_path / "stack.json").read() == StackState()


def test_a_change_of_the_state_keeps_other_entries(tmp_path: Path) -> None:
    state = StateFile(tmp_path / "stack.json")
    state.save_ports({"kafka": 1})
    state.save_ports({"s3": 2})
    state.save_process("kafka", ProcessRecord(pid=7, created=1.5))
    state.save_process("s3", ProcessRecord(pid=8, created=1.5))
    state.forget_process("kafka")
    assert StateFile(tmp_path / "stack.json").read() == StackState(
        ports={"kafka": 1, "s3": 2}, processes={"s3": ProcessRecord(pid=8, created=1.5)}
    )


def test_an_atomic_write_leaves_no_other_file_and_sets_the_mode(tmp_path: Path) -> None:
    write_atomic(tmp_path / "f", "one", mode=0o600)
    write_atomic(tmp_path / "f", "two", mode=0o640)
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_text() == "two"
    assert mode(tmp_path / "f") == 0o640


def test_state_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_atomic(tmp_path / "f", "x")
        StateFile(tmp_path / "stack.json").save_ports({"kafka": 1})
        Journal(tmp_path / "demo.json", resume=False).step("load", lambda: 1)
    finally:
        os.umask(before)
    assert {path.name: mode(path) for path in tmp_path.iterdir() if path.is_file()} == {
        "f": 0o600,
        "stack.json": 0o600,
        "demo.json": 0o600,
    }


def test_the_default_home_is_in_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    assert find_home().path == tmp_path / ".cdc-lake"
    monkeypatch.setenv("CDC_LAKE_HOME", str(tmp_path / "elsewhere"))
    assert find_home().path == tmp_path / "elsewhere"
    assert find_home(Path("here")).path == tmp_path / "a" / "b" / "here"


def test_a_locked_home_is_reported(tmp_path: Path) -> None:
    home = StackHome(tmp_path / "home")
    home.make()
    with home.locked(), pytest.raises(StackError, match="another cdc-lake command"), home.locked(seconds=0.1):
        pass
