"""Plugin archives: content, reproducible bytes, and rejected sources."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from resources.connect.plugin_archive import CONFIG_PROVIDER, PluginInvalid, build

CLASS = f"{CONFIG_PROVIDER.replace('.', '/')}.class"


def zipped(path: Path, members: Mapping[str, bytes]) -> Path:
    """Write a zip or jar with these members."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def jar(path: Path, *classes: str) -> Path:
    """Write a jar with these classes."""
    return zipped(path, dict.fromkeys(classes, b"class"))


@pytest.fixture
def debezium(tmp_path: Path) -> Path:
    """A plugin folder as in Debezium's archive, with the shim that Kafka's tool adds."""
    folder = tmp_path / "debezium"
    jar(folder / "debezium-connector-postgres" / "debezium-connector-postgres-3.7.0.Final.jar", "a.class")
    jar(folder / "debezium-connector-postgres" / "protobuf-java-3.25.5.jar", "b.class")
    jar(folder / "debezium-connector-postgres" / "connect-plugin-path-shim-1.0.0.jar", "shim.class")
    (folder / "debezium-connector-postgres" / "README.md").write_text("read me")
    return folder


@pytest.fixture
def provider(tmp_path: Path) -> Path:
    """A jar with AWS's config providers."""
    return jar(tmp_path / "msk-config-providers-0.4.0-all.jar", CLASS)


def test_jars_are_at_the_root_and_the_name_contains_the_hash(tmp_path: Path, debezium: Path, provider: Path) -> None:
    vendor = zipped(
        tmp_path / "lenses.zip",
        {
            "kafka-connect-aws-s3-9.0.0/lib/sink-9.0.0.jar": (provider.parent / "x.jar").name.encode(),
            "kafka-connect-aws-s3-9.0.0/LICENSE": b"Apache",
        },
    )
    built = build("debezium", debezium, [provider, vendor], tmp_path / "out")
    expected = ("debezium-connector-postgres-3.7.0.Final.jar", "msk-config-providers-0.4.0-all.jar")
    assert built.jars == (*expected, "protobuf-java-3.25.5.jar", "sink-9.0.0.jar")
    with zipfile.ZipFile(built.path) as archive:
        assert tuple(archive.namelist()) == built.jars
        assert archive.testzip() is None
        assert archive.read(provider.name) == provider.read_bytes()
    assert built.digest == hashlib.sha256(built.path.read_bytes()).hexdigest()
    assert built.path.name == f"debezium-{built.digest[:12]}.zip"
    assert built.name == f"debezium-{built.digest[:12]}"
    assert [each.name for each in built.path.parent.iterdir()] == [built.path.name]


def test_the_same_jars_make_the_same_zip_in_any_order(tmp_path: Path, debezium: Path, provider: Path) -> None:
    other = jar(tmp_path / "other-1.0.jar", "c.class")
    first = build("debezium", debezium, [provider, other], tmp_path / "one")
    for path in debezium.rglob("*.jar"):
        os.utime(path, (1, 1))
    assert build("debezium", debezium, [other, provider, other], tmp_path / "two").digest == first.digest
    jar(tmp_path / "other-1.0.jar", "d.class")
    assert build("debezium", debezium, [provider, other], tmp_path / "one").digest != first.digest


def test_a_folder_is_added_like_the_avro_converters(tmp_path: Path, debezium: Path) -> None:
    converter = tmp_path / "avro-converter" / "apicurio-avro-converter"
    jar(converter / "avro-1.12.0.jar", "c.class")
    jar(converter / "connect-plugin-path-shim-1.0.0.jar", "shim.class")
    built = build("debezium", debezium, [converter.parent], tmp_path / "out", provider=None)
    assert built.jars == ("avro-1.12.0.jar", "debezium-connector-postgres-3.7.0.Final.jar", "protobuf-java-3.25.5.jar")
    assert build("debezium", debezium, [converter], tmp_path / "out", provider=None).digest == built.digest


def test_a_plugin_without_the_config_provider_is_rejected(tmp_path: Path, debezium: Path) -> None:
    with pytest.raises(PluginInvalid, match=rf"the plugin debezium: no jar contains the class {CONFIG_PROVIDER}.*-all"):
        build("debezium", debezium, [], tmp_path / "out")
    assert build("debezium", debezium, [], tmp_path / "out", provider=None).jars


def test_an_artifact_in_two_versions_is_reported(tmp_path: Path, debezium: Path) -> None:
    older = jar(tmp_path / "protobuf-java-3.19.0.jar", "b.class")
    assert build("sink", debezium, [older], tmp_path / "out", provider=None).duplicates == ("protobuf-java",)


def test_different_jars_with_one_name_are_rejected(tmp_path: Path, debezium: Path) -> None:
    other = jar(tmp_path / "vendor" / "protobuf-java-3.25.5.jar", "different.class")
    with pytest.raises(PluginInvalid, match=r"protobuf-java-3\.25\.5\.jar in .*vendor.* differs from"):
        build("sink", debezium, [other], tmp_path / "out", provider=None)


def test_invalid_sources_are_named(tmp_path: Path, debezium: Path) -> None:
    not_a_zip = tmp_path / "notes.zip"
    not_a_zip.write_text("no zip")
    broken = tmp_path / "broken.zip"
    zipped(broken, {"lib/broken-1.0.jar": b"not a jar"})
    (tmp_path / "empty").mkdir()
    for sources, message in (
        ([tmp_path / "empty"], r"the folder .*empty to the plugin: it contains no jar"),
        ([tmp_path / "missing.zip"], r"missing\.zip to the plugin: there is no such file"),
        ([not_a_zip], r"notes\.zip to the plugin: it is neither a jar nor a zip"),
        ([zipped(tmp_path / "docs.zip", {"README": b""})], r"docs\.zip to the plugin: it contains no jar"),
        ([broken], r"Cannot read broken-1\.0\.jar in .*broken\.zip"),
    ):
        with pytest.raises(PluginInvalid, match=message):
            build("sink", debezium, sources, tmp_path / "out")
    with pytest.raises(PluginInvalid, match="Cannot build the plugin sink: there are no jars"):
        build("sink", None, [], tmp_path / "out")
    with pytest.raises(PluginInvalid, match="'s3_sink'"):
        build("s3_sink", debezium, [], tmp_path / "out")
    assert not (tmp_path / "out").exists()
