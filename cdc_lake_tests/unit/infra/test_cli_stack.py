"""The commands of the stack: arguments, output, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdc_lake.cli.app import app, main
from infra.artifacts import jar_locks, maven
from infra.artifacts.artifacts import AWS_MODULES, missing

run = CliRunner().invoke


def test_status_of_an_unstarted_stack_is_stopped(tmp_path: Path) -> None:
    result = run(app, ["status", "--home", str(tmp_path), "--json"])
    assert result.exit_code == 0
    components = json.loads(result.stdout)
    assert {c["state"] for c in components} == {"stopped"}
    assert set(components[0]) == {"name", "state", "pid", "port", "version", "rss_bytes"}
    assert "stopped" in run(app, ["status", "--home", str(tmp_path)]).stdout


def test_an_error_is_one_line_with_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["cdc-lake", "env", "--home", str(tmp_path)])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 1
    assert capsys.readouterr().err == (
        f"error: Cannot use the stack in {tmp_path}: it was never started. Run `cdc-lake up`.\n"
    )


def test_cdc_lake_debug_prints_the_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CDC_LAKE_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["cdc-lake", "env", "--home", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"^1$"):
        main()
    printed = capsys.readouterr().err
    assert printed.startswith("Traceback (most recent call last)")
    assert "never started" in printed


def test_logs_prints_the_last_lines(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "kafka.log").write_text("one\ntwo\nthree\n")
    result = run(app, ["logs", "kafka", "-n", "2", "--home", str(tmp_path)])
    assert result.stdout == "two\nthree\n"
    missing = run(app, ["logs", "flink", "--home", str(tmp_path)])
    assert "Choose one of the components with a log: kafka" in str(missing.exception)


def test_logs_follows_what_is_appended(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "kafka.log"
    log.parent.mkdir()
    log.write_text("one\ntwo\n")
    command: list[str | Path] = [
        Path(sys.executable).with_name("cdc-lake"),
        "logs",
        "kafka",
        "--follow",
        "--lines",
        "1",
    ]
    with subprocess.Popen([*command, "--home", tmp_path], stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "two\n"
        with log.open("a") as file:
            file.write("three\n")
        assert following.stdout.readline() == "three\n"
        log.write_text("new\n")  # truncated, as at the next start
        assert following.stdout.readline() == "new\n"
        following.kill()  # SIGTERM may be ignored, if the tests run in the background of a shell


def test_doctor_exits_with_1_when_something_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_CACHE", "/proc/nowhere")
    result = run(app, ["doctor", "--json", "--home", str(tmp_path)])
    assert result.exit_code == 1
    assert any(c["level"] == "missing" and c["name"] == "cache folder" for c in json.loads(result.stdout))


def test_setup_for_aws_fetches_the_aws_modules(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_up_before_setup_advises_to_run_setup(tmp_path: Path) -> None:
    result = run(app, ["up", "--only", "kafka", "--home", str(tmp_path / "home")])
    assert "Run `cdc-lake setup`" in str(result.exception)
