"""The Glue Data Catalog as a Dagster resource: the databases and tables that Athena queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from resources.aws.aws_resource import AwsRequestFailed, AwsResource
from resources.glue.tables import (
    GlueColumn,
    TableDefinition,
    external_table,
    hudi_table,
    merge_on_read,
    partition_values,
    view_sql,
)

__all__ = ["GlueCatalog", "GlueColumn", "TableDefinition", "external_table", "hudi_table", "merge_on_read"]

_MISSING = "EntityNotFoundException"
_EXISTS = "AlreadyExistsException"
_PARTITIONS_PER_REQUEST = 100  # the maximum of one BatchCreatePartition or BatchUpdatePartition request


class GlueCatalog(AwsResource):
    """A Glue catalog. Every method raises Unreachable, AccessRefused or AwsRequestFailed if a request fails.

    Usage:

        glue = GlueCatalog(region="eu-west-1")
        glue.ensure_database("datalake")
    """

    def ensure_database(self, name: str, location: str | None = None) -> bool:
        """Create the database if it does not exist.

        Args:
            name: the database's name in lower case.
            location: the s3:// prefix for tables that CREATE TABLE AS creates without a location.

        Returns:
            True if it was created; False if it existed, with its location unchanged.
        """
        wanted = {"Name": name, "LocationUri": location} if location else {"Name": name}
        client = self.client("glue")
        # Read first, so that callers whose database exists need no permission to create databases.
        with self.translate_errors(f"create the Glue database {name}"):
            try:
                client.get_database(Name=name)
            except client.exceptions.EntityNotFoundException:
                with suppress(client.exceptions.AlreadyExistsException):
                    client.create_database(DatabaseInput=wanted)
                    return True
        return False

    def table_names(self, database: str) -> list[str]:
        """Return the names of a database's tables and views, sorted; empty if the database does not exist."""
        try:
            with self.translate_errors(f"list the tables of the Glue database {database}"):
                pages = self.client("glue").get_paginator("get_tables").paginate(DatabaseName=database)
                found = [each["Name"] for page in pages for each in page["TableList"]]
        except AwsRequestFailed as error:
            if error.code != _MISSING:
                raise
            return []
        return sorted(found)

    def get_table(self, database: str, name: str) -> TableDefinition | None:
        """Return the table or view, None if it or its database does not exist."""
        try:
            with self.translate_errors(f"read the Glue table {database}.{name}"):
                return TableDefinition.from_glue(
                    self.client("glue").get_table(DatabaseName=database, Name=name)["Table"]
                )
        except AwsRequestFailed as error:
            if error.code == _MISSING:
                return None
            raise

    def view_sql(self, database: str, name: str) -> str | None:
        """Return the SELECT of a view that Athena or Trino created, None if there is no such table or view."""
        try:
            with self.translate_errors(f"read the Glue view {database}.{name}"):
                table = self.client("glue").get_table(DatabaseName=database, Name=name)["Table"]
        except AwsRequestFailed as error:
            if error.code == _MISSING:
                return None
            raise
        return view_sql(table)

    def put_table(self, definition: TableDefinition) -> bool:
        """Create the table, or update it if it differs.

        Returns:
            True if something was changed, False if the catalog already had this definition.
        """
        present = self.get_table(definition.database, definition.name)
        if present == definition:
            return False
        client, wanted = self.client("glue"), definition.to_input()
        with self.translate_errors(f"write the Glue table {definition.full_name}"):
            if present is not None:
                client.update_table(DatabaseName=definition.database, TableInput=wanted)
                return True
            try:
                client.create_table(DatabaseName=definition.database, TableInput=wanted)
            except client.exceptions.AlreadyExistsException:
                # Another process created it between the two calls; overwrite its definition.
                client.update_table(DatabaseName=definition.database, TableInput=wanted)
        return True

    def put_partitions(
        self, definition: TableDefinition, folders: Iterable[str] | Mapping[str, str], *, update: bool = False
    ) -> int:
        """Create the partitions that the table does not have yet.

        Args:
            definition: the table, which exists in the catalog.
            folders: the Hive-style folder of each partition below the table's location, such as `a=1/b=2`, in the order
                of the partition keys; or a mapping of such folders to other locations.
            update: also set the table's columns on those of the partitions that exist.

        Returns:
            The number of partitions that were missing.
        """
        locations: Mapping[str, str] = folders if isinstance(folders, Mapping) else {}
        client, wanted_folders = self.client("glue"), sorted(set(folders))
        with self.translate_errors(f"create or update partitions of the Glue table {definition.full_name}"):
            present = _present(client, definition, [partition_values(each) for each in wanted_folders])
            missing = [each for each in wanted_folders if tuple(partition_values(each)) not in present]
            for start in range(0, len(missing), _PARTITIONS_PER_REQUEST):
                part = missing[start : start + _PARTITIONS_PER_REQUEST]
                wanted = [definition.partition_input(each, locations.get(each)) for each in part]
                response = client.batch_create_partition(
                    DatabaseName=definition.database,
                    TableName=definition.name,
                    PartitionInputList=wanted,
                )
                for fault in response.get("Errors", []):
                    _require_created(definition, fault)
            if update:
                _update(client, definition, [each for each in wanted_folders if each not in missing], locations)
        return len(missing)

    def partitions(self, database: str, name: str) -> set[tuple[str, ...]]:
        """Return the values of each partition of a table; empty if the table or its database does not exist."""
        try:
            with self.translate_errors(f"list the partitions of the Glue table {database}.{name}"):
                return _all_partitions(self.client("glue"), {"DatabaseName": database, "TableName": name})
        except AwsRequestFailed as error:
            if error.code != _MISSING:
                raise
            return set()

    def delete_table(self, database: str, name: str) -> bool:
        """Remove the table or view from the catalog; its files stay.

        Returns:
            True if it existed.
        """
        try:
            with self.translate_errors(f"delete the Glue table {database}.{name}"):
                self.client("glue").delete_table(DatabaseName=database, Name=name)
        except AwsRequestFailed as error:
            if error.code == _MISSING:
                return False
            raise
        return True


def _present(client: Any, definition: TableDefinition, values: list[list[str]]) -> set[tuple[str, ...]]:  # noqa: ANN401 - boto3's
    """Return the values of existing partitions: those among `values` if one request returns them, otherwise all."""
    table = {"DatabaseName": definition.database, "TableName": definition.name}
    if len(values) <= _PARTITIONS_PER_REQUEST:
        found = client.batch_get_partition(**table, PartitionsToGet=[{"Values": each} for each in values])
        if not found.get("UnprocessedKeys"):
            return {tuple(each["Values"]) for each in found["Partitions"]}
    return _all_partitions(client, table)


def _all_partitions(client: Any, table: Mapping[str, str]) -> set[tuple[str, ...]]:  # noqa: ANN401 - boto3's
    pages = client.get_paginator("get_partitions").paginate(**table, ExcludeColumnSchema=True)
    return {tuple(each["Values"]) for page in pages for each in page["Partitions"]}


def _update(
    client: Any,  # noqa: ANN401 - boto3's
    definition: TableDefinition,
    folders: list[str],
    locations: Mapping[str, str],
) -> None:
    """Set the table's columns on existing partitions: Athena compares a partition's columns with the table's."""
    for start in range(0, len(folders), _PARTITIONS_PER_REQUEST):
        entries = [
            {"PartitionValueList": partition_values(each), "PartitionInput": definition.partition_input(each, place)}
            for each in folders[start : start + _PARTITIONS_PER_REQUEST]
            for place in (locations.get(each),)
        ]
        response = client.batch_update_partition(
            DatabaseName=definition.database, TableName=definition.name, Entries=entries
        )
        for fault in response.get("Errors", []):
            detail = fault.get("ErrorDetail", {})
            reason = detail.get("ErrorMessage", "")
            values = ", ".join(fault.get("PartitionValueList", []))
            message = f"Cannot update the partition ({values}) of the Glue table {definition.full_name}: {reason}"
            raise AwsRequestFailed(f"{message.rstrip('.')}.", detail.get("ErrorCode", ""), reason)


def _require_created(definition: TableDefinition, fault: Mapping[str, Any]) -> None:
    """Raise for a partition that Glue did not create, unless another run has created it."""
    detail = fault.get("ErrorDetail", {})
    code, reason = detail.get("ErrorCode", ""), detail.get("ErrorMessage", "")
    if code != _EXISTS:
        values = ", ".join(fault.get("PartitionValues", []))
        message = f"Cannot create the partition ({values}) of the Glue table {definition.full_name}: {reason}"
        raise AwsRequestFailed(f"{message.rstrip('.')}.", code, reason)
