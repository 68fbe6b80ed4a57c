"""`cdc-lake aws plugins`: output and errors."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdc_lake.cli.app import app
from cdc_lake.pipeline import avro_pipelines
from infra.artifacts.artifacts import folder_of
from resources.connect.plugin_archive import CONFIG_PROVIDER, PluginInvalid
from resources.msk_connect.plugins import MskPlugins


@pytest.fixture(autouse=True)
def debezium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create a cache folder with Debezium's plugin, in a project without pipelines in Avro."""
    monkeypatch.setattr(avro_pipelines, "names", lambda: [])
    monkeypatch.setenv("CDC_LAKE_CACHE", str(tmp_path / "cache"))
    for version in ("1.0", "1.1"):
        path = folder_of("debezium") / "debezium-connector-postgres" / f"connector-{version}.jar"
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w") as jar:
            jar.writestr("a.class", version)


def test_build_prints_only_the_path(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["aws", "plugins", "build", "--no-provider", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    path = Path(done.stdout.strip())
    assert path.is_file()
    assert path.parent == tmp_path / "out"
    assert "warning: the zip contains several versions of connector" in done.stderr


def test_build_includes_the_converter_if_a_pipeline_is_in_avro(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    converter = folder_of("avro-converter") / "apicurio-avro-converter" / "converter.jar"
    converter.parent.mkdir(parents=True)
    with zipfile.ZipFile(converter, "w") as jar:
        jar.writestr("c.class", b"")

    def packed(*options: str) -> set[str]:
        out = str(tmp_path / "out")
        done = CliRunner().invoke(app, ["aws", "plugins", "build", "--no-provider", "--out", out, *options])
        assert done.exit_code == 0, done.output
        with zipfile.ZipFile(done.stdout.strip()) as archive:
            return set(archive.namelist())

    debezium = {"connector-1.0.jar", "connector-1.1.jar"}
    assert packed() == debezium
    assert packed("--avro") == debezium | {converter.name}
    monkeypatch.setattr(avro_pipelines, "names", lambda: ["moma"])
    assert packed() == debezium | {converter.name}
    assert packed("--no-avro") == debezium
    assert packed("--no-debezium", "--add", str(folder_of("debezium"))) == debezium, "a sink needs no converter"


def test_build_can_exclude_debezium(tmp_path: Path) -> None:
    sink = tmp_path / "sink.jar"
    with zipfile.ZipFile(sink, "w") as jar:
        jar.writestr("b.class", b"")
    options = ["--no-debezium", "--no-provider", "--name", "sink", "--add", str(sink), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["aws", "plugins", "build", *options])
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile(done.stdout.strip()) as archive:
        assert archive.namelist() == ["sink.jar"]


def test_build_includes_debezium_and_requires_the_provider(tmp_path: Path) -> None:
    options = ["--debezium", "--provider", "--out", str(tmp_path / "out")]
    without = CliRunner().invoke(app, ["aws", "plugins", "build", *options])
    assert isinstance(without.exception, PluginInvalid)
    assert CONFIG_PROVIDER in without.exception.user_message
    provider = tmp_path / "provider.jar"
    with zipfile.ZipFile(provider, "w") as jar:
        jar.writestr(f"{CONFIG_PROVIDER.replace('.', '/')}.class", b"")
    done = CliRunner().invoke(app, ["aws", "plugins", "build", "--add", str(provider), *options])
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile(done.stdout.strip()) as archive:
        assert archive.namelist() == ["connector-1.0.jar", "connector-1.1.jar", "provider.jar"]


def test_upload_of_a_missing_zip_is_rejected(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.zip")
    done = CliRunner().invoke(app, ["aws", "plugins", "upload", missing, "--bucket", "b"])
    assert isinstance(done.exception, PluginInvalid)
    assert "aws plugins build" in done.exception.user_message


def test_upload_passes_its_options_and_prints_the_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uploads: list[tuple[MskPlugins, Path]] = []

    def ensure(plugins: MskPlugins, archive: Path) -> str:
        uploads.append((plugins, archive))
        return "arn:plugin"

    monkeypatch.setattr(MskPlugins, "ensure", ensure)
    archive = tmp_path / "a.zip"
    archive.touch()
    endpoints = ["--endpoint-url", "http://127.0.0.1:1", "--s3-endpoint-url", "http://127.0.0.1:2"]
    place = ["--bucket", "b", "--prefix", "mine/", "--region", "eu-west-1"]
    done = CliRunner().invoke(app, ["aws", "plugins", "upload", str(archive), *place, *endpoints])
    assert done.stdout == "arn:plugin\n", done.output
    [(plugins, uploaded)] = uploads
    assert uploaded == archive
    assert (plugins.bucket, plugins.prefix, plugins.region) == ("b", "mine/", "eu-west-1")
    assert (plugins.endpoint_url, plugins.s3_endpoint_url) == ("http://127.0.0.1:1", "http://127.0.0.1:2")
