"""`cdc-lake aws plugins`: what is printed, and what stops it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdc_lake.cli.app import app
from infra.local.artifacts.artifacts import folder_of
from resources.connect.plugin_archive import PluginInvalid


@pytest.fixture(autouse=True)
def debezium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache folder with Debezium's plugin."""
    monkeypatch.setenv("CDC_LAKE_CACHE", str(tmp_path / "cache"))
    for version in ("1.0", "1.1"):
        path = folder_of("debezium") / "debezium-connector-postgres" / f"connector-{version}.jar"
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w") as jar:
            jar.writestr("a.class", version)


def test_the_path_is_printed_and_nothing_else(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["aws", "plugins", "build", "--no-provider", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    path = Path(done.stdout.strip())
    assert path.is_file()
    assert path.parent == tmp_path / "out"
    assert "warning: the zip contains more than one version of connector" in done.stderr


def test_debezium_can_stay_out(tmp_path: Path) -> None:
    sink = tmp_path / "sink.jar"
    with zipfile.ZipFile(sink, "w") as jar:
        jar.writestr("b.class", b"")
    options = ["--no-debezium", "--no-provider", "--name", "sink", "--add", str(sink), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["aws", "plugins", "build", *options])
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile(done.stdout.strip()) as archive:
        assert archive.namelist() == ["sink.jar"]


def test_a_zip_that_was_not_built_is_no_upload(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.zip")
    done = CliRunner().invoke(app, ["aws", "plugins", "upload", missing, "--bucket", "b"])
    assert isinstance(done.exception, PluginInvalid)
    assert "aws plugins build" in done.exception.user_message
