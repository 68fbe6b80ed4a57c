"""Unpacking of tarballs: selected parts, hard links, and members outside of the folder."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from infra.artifacts.unpack import unpack, unpack_folders
from infra.errors import StackError


def tarball(path: Path, files: dict[str, bytes], links: dict[str, str]) -> Path:
    """Write a tar.gz with these files, then these hard links."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for name, target in links.items():
            member = tarfile.TarInfo(name)
            member.type = tarfile.LNKTYPE
            member.linkname = target
            tar.addfile(member)
    return path


def test_links_to_dropped_members_become_files(tmp_path: Path) -> None:
    archive = tarball(
        tmp_path / "server.tar.gz",
        {"server-1/lib/core.jar": b"core", "server-1/plugin/other/shared.jar": b"shared", "server-1/README": b"x"},
        {
            "server-1/plugin/hive/shared.jar": "server-1/plugin/other/shared.jar",
            "server-1/plugin/hive/core.jar": "server-1/lib/core.jar",
            "server-1/plugin/hudi/shared.jar": "server-1/plugin/hive/shared.jar",
            "server-1/plugin/other/core.jar": "server-1/lib/core.jar",
        },
    )
    unpack_folders(archive, tmp_path / "out", ("lib", "plugin/hive", "plugin/hudi"))
    files = {str(p.relative_to(tmp_path / "out")): p.read_bytes() for p in (tmp_path / "out").rglob("*.jar")}
    assert files == {
        "lib/core.jar": b"core",
        "plugin/hive/core.jar": b"core",
        "plugin/hive/shared.jar": b"shared",
        "plugin/hudi/shared.jar": b"shared",
    }
    assert not (tmp_path / "out" / "README").exists()
    shared = tmp_path / "out" / "plugin"
    assert (shared / "hive/shared.jar").samefile(shared / "hudi/shared.jar"), "the bytes are stored once"


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    archive = tarball(tmp_path / "a.tar.gz", {"a/lib/x.jar": b"x"}, {})
    with pytest.raises(StackError, match="has no folder plugin/hudi"):
        unpack_folders(archive, tmp_path / "out", ("lib", "plugin/hudi"))


def test_a_broken_link_is_named(tmp_path: Path) -> None:
    archive = tarball(tmp_path / "a.tar.gz", {}, {"a/lib/x.jar": "a/gone.jar"})
    with pytest.raises(StackError, match=r"lib/x\.jar links to a file that is not in the archive"):
        unpack_folders(archive, tmp_path / "out", ("lib",))


def test_a_member_outside_of_the_folder_is_rejected(tmp_path: Path) -> None:
    archive = tarball(tmp_path / "a.tar.gz", {"a/lib/../../../evil": b"x"}, {})
    with pytest.raises(StackError, match="would be written outside of"):
        unpack_folders(archive, tmp_path / "out", ("lib",))
    with pytest.raises(StackError, match="would be written outside of"):
        unpack(archive, tmp_path / "out")
    assert not list(tmp_path.rglob("evil"))


def test_a_whole_archive_is_unpacked_without_its_top_folder(tmp_path: Path) -> None:
    archive = tarball(tmp_path / "a.tar.gz", {"a/lib/x.jar": b"x", "a/README": b"read"}, {})
    unpack(archive, tmp_path / "out")
    files = {str(p.relative_to(tmp_path / "out")): p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert files == {"a/lib/x.jar": b"x", "a/README": b"read"}


def test_a_link_in_a_whole_archive_is_rejected(tmp_path: Path) -> None:
    archive = tarball(tmp_path / "a.tar.gz", {"a/x.jar": b"x"}, {"a/y.jar": "a/x.jar"})
    with pytest.raises(StackError, match=r"a/y\.jar is not a regular file"):
        unpack(archive, tmp_path / "out")
