"""The Glue catalog's file: save and restore."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.glue.models import GlueBackend, glue_backends

from infra.local.aws_api.glue.catalog_file import CatalogFile

REGION = "us-west-2"


@pytest.fixture
def backend() -> Iterator[GlueBackend]:
    found = glue_backends[DEFAULT_ACCOUNT_ID][REGION]
    found.databases.clear()
    yield found
    found.databases.clear()


def test_databases_tables_and_partitions_are_restored(backend: GlueBackend, tmp_path: Path) -> None:
    file = CatalogFile(tmp_path / "glue.json", REGION)
    backend.create_database("lake", {"Name": "lake", "LocationUri": "s3://b/x"})
    backend.create_table("lake", "t", {"Name": "t", "Parameters": {"a": "1"}})
    backend.update_table("lake", "t", {"Name": "t", "Parameters": {"a": "2"}})
    backend.create_partition("lake", "t", {"Values": ["2026"]})
    before = backend.get_table("lake", "t").as_dict()
    file.save()
    backend.databases.clear()

    file.restore()

    assert backend.get_database("lake").as_dict()["LocationUri"] == "s3://b/x"
    assert backend.get_table("lake", "t").as_dict() == before
    assert [each.values for each in backend.get_partitions("lake", "t", "")] == [["2026"]]


def test_versions_continue_after_a_restore(backend: GlueBackend, tmp_path: Path) -> None:
    file = CatalogFile(tmp_path / "glue.json", REGION)
    backend.create_database("lake", {"Name": "lake"})
    backend.create_table("lake", "t", {"Name": "t"})
    backend.update_table("lake", "t", {"Name": "t"})
    file.save()
    file.restore()

    backend.update_table("lake", "t", {"Name": "t", "Description": "new"})

    assert backend.get_table("lake", "t").as_dict()["VersionId"] == "3"


def test_without_a_file_the_catalog_is_empty(backend: GlueBackend, tmp_path: Path) -> None:
    CatalogFile(tmp_path / "none.json", REGION).restore()

    assert not backend.databases


def test_a_failed_write_keeps_the_previous_file(backend: GlueBackend, tmp_path: Path) -> None:
    file = CatalogFile(tmp_path / "glue.json", REGION)
    backend.create_database("lake", {"Name": "lake"})
    file.save()
    before = (tmp_path / "glue.json").read_text()
    (tmp_path / f".glue.json.{os.getpid()}.tmp").mkdir()  # the new file can't be opened
    backend.create_database("other", {"Name": "other"})

    with pytest.raises(OSError, match="directory"):
        file.save()

    assert (tmp_path / "glue.json").read_text() == before


def test_a_file_of_another_format_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "glue.json").write_text('{"format": 99, "databases": []}')

    with pytest.raises(ValueError, match="format 99"):
        CatalogFile(tmp_path / "glue.json", REGION).restore()
