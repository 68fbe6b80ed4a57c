"""The Glue catalog on disk: one JSON file with databases, tables and partitions, replaced as a whole.

For each table the file contains the current version with its number, but no older versions. catalog.py decides when
to save.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.glue.models import FakeDatabase, FakeTable, GlueBackend, glue_backends

from infra.files import write_atomic

_FORMAT = 1


class CatalogFile:
    """Saves moto's Glue backend of one region to a file, and restores it."""

    def __init__(self, path: Path, region: str) -> None:
        self._path = path
        self._backend: GlueBackend = glue_backends[DEFAULT_ACCOUNT_ID][region]

    def save(self) -> None:
        """Write the whole catalog.

        Raises:
            OSError: The file could not be written; the previous one is unchanged.
        """
        document = {
            "format": _FORMAT,
            "databases": [_database_to_json(each) for each in self._backend.databases.values()],
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self._path, json.dumps(document, indent=1))

    def restore(self) -> None:
        """Replace the catalog in memory with the catalog in the file; with an empty one if there is no file.

        Raises:
            ValueError: The file is not a catalog of this format.
        """
        document = json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else None
        if document is not None and document.get("format") != _FORMAT:
            raise ValueError(
                f"Cannot read {self._path}: it has format {document.get('format')!r}, and this version reads "
                f"{_FORMAT}. Move the file away to start with an empty catalog."
            )
        self._backend.databases.clear()
        for each in document["databases"] if document else []:
            self._backend.databases[each["name"]] = _database_from_json(each, self._backend)


def _database_to_json(database: FakeDatabase) -> dict[str, Any]:
    return {
        "name": database.name,
        "input": database.input,
        "created": database.created_time.isoformat(),
        "tables": [_table_to_json(each) for each in database.tables.values()],
    }


def _table_to_json(table: FakeTable) -> dict[str, Any]:
    version = table._current_version
    return {
        "name": table.name,
        "input": table.versions[str(version)],
        "version": version,
        "created": table.created_time.isoformat(),
        "updated": table.updated_time.isoformat() if table.updated_time else None,
        "partitions": [each.partition_input for each in table.partitions.values()],
    }


def _database_from_json(document: dict[str, Any], backend: GlueBackend) -> FakeDatabase:
    database = FakeDatabase(document["name"], document["input"], catalog_id=backend.account_id)
    database.created_time = datetime.fromisoformat(document["created"])
    for each in document["tables"]:
        database.tables[each["name"]] = _table_from_json(each, database)
    return database


def _table_from_json(document: dict[str, Any], database: FakeDatabase) -> FakeTable:
    table = FakeTable(database.name, document["name"], document["input"], catalog_id=database.catalog_id)
    table._current_version = document["version"]
    table.versions = {str(document["version"]): document["input"]}
    table.created_time = datetime.fromisoformat(document["created"])
    if document["updated"]:
        table.updated_time = datetime.fromisoformat(document["updated"])
    for each in document["partitions"]:
        table.create_partition(each)
    return table
