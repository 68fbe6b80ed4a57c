"""The commands of the stack: arguments, output, exit codes. What they start is tested elsewhere."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdc_lake.cli.app import app, main
from infra.local.artifacts import jar_locks, maven
from infra.local.artifacts.artifacts import AWS_MODULES, missing

run = CliRunner().invoke


def test_status_of_a_stack_that_was_never_started(tmp_path: Path) -> None:
    result = run(app, ["status", "--home", str(tmp_path), "--json"])
    assert result.exit_code == 0
    components = json.loads(result.stdout)
    assert {c["state"] for c in components} == {"stopped"}
    assert set(components[0]) == {"name", "state", "pid", "port", "version", "rss_bytes"}
    assert "stopped" in run(app, ["status", "--home", str(tmp_path)]).stdout


def test_an_error_is_one_line_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["cdc-lake", "env", "--home", str(tmp_path)])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 1
    assert capsys.readouterr().err == f"error: the stack in {tmp_path} was never started: run `cdc-lake up`\n"


def test_debugging_shows_the_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["cdc-lake", "env", "--home", str(tmp_path)])
    with pytest.raises(Exception, match="never started"):
        main()


def test_logs_prints_the_end(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "kafka.log").write_text("one\ntwo\nthree\n")
    result = run(app, ["logs", "kafka", "-n", "2", "--home", str(tmp_path)])
    assert result.stdout == "two\nthree\n"
    missing = run(app, ["logs", "flink", "--home", str(tmp_path)])
    assert "the components with a log are: kafka" in str(missing.exception)


def test_doctor_exits_with_1_when_something_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_CACHE", "/proc/nowhere")
    result = run(app, ["doctor", "--json", "--home", str(tmp_path)])
    assert result.exit_code == 1
    assert any(c["level"] == "missing" and c["name"] == "cache folder" for c in json.loads(result.stdout))


def test_setup_for_aws_fetches_what_goes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[str] = []

    def copy(pom: Path, into: Path, _repository: Path, _log: Path) -> None:
        fetched.append(pom.parent.name)
        with tarfile.open(into / "plugin.tar.gz", "w:gz") as plugin:
            plugin.add(pom, "plugin/some-1.0.jar")
        (into / "some-1.0.jar").touch()

    monkeypatch.setattr(maven, "copy_dependencies", copy)
    monkeypatch.setattr(jar_locks, "verify", lambda _folder, _pom: None)
    result = run(app, ["setup", "--aws"])
    assert result.exit_code == 0, result.output
    assert fetched == list(AWS_MODULES)
    assert missing(AWS_MODULES) == []


def test_up_before_setup_says_so(tmp_path: Path) -> None:
    result = run(app, ["up", "--only", "kafka", "--home", str(tmp_path / "home")])
    assert "run `cdc-lake setup`" in str(result.exception)
