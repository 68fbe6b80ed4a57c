"""The GlueCatalog resource against moto's Glue."""

from __future__ import annotations

import dataclasses
import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from moto import mock_aws

from resources.aws.aws_resource import AwsRequestFailed
from resources.errors import Unreachable
from resources.glue.catalog import GlueCatalog, GlueColumn, TableDefinition, hudi_table, merge_on_read

COLUMNS = [GlueColumn("order_id", "int"), GlueColumn("freight", "decimal(6,2)", "in euros")]


@pytest.fixture
def catalog() -> Iterator[GlueCatalog]:
    with mock_aws():
        glue = GlueCatalog(access_key="key", secret_key="secret")
        glue.ensure_database("lake", "s3://bucket/lake/")
        yield glue


@pytest.fixture
def orders() -> TableDefinition:
    return hudi_table("lake", "orders", "s3a://bucket/lake/orders/", COLUMNS)


def test_a_database_is_created_once(catalog: GlueCatalog) -> None:
    assert catalog.ensure_database("other") is True
    assert catalog.ensure_database("other") is False
    assert catalog.ensure_database("lake", "s3://elsewhere/") is False


def test_a_table_is_written_only_when_it_differs(catalog: GlueCatalog, orders: TableDefinition) -> None:
    assert catalog.put_table(orders) is True
    assert catalog.put_table(orders) is False
    wider = hudi_table("lake", "orders", "s3a://bucket/lake/orders", [*COLUMNS, GlueColumn("ship_city", "string")])

    assert catalog.put_table(wider) is True
    assert catalog.get_table("lake", "orders") == wider


def test_parameters_added_by_an_engine_are_no_difference(catalog: GlueCatalog, orders: TableDefinition) -> None:
    catalog.put_table(orders)
    changed_input: Any = orders.to_input()
    changed_input["Parameters"]["transient_lastDdlTime"] = "1"
    boto3.client("glue", region_name="us-east-1").update_table(DatabaseName="lake", TableInput=changed_input)

    assert catalog.put_table(orders) is False


def test_a_missing_table_is_none_and_deleting_it_returns_false(catalog: GlueCatalog, orders: TableDefinition) -> None:
    assert catalog.get_table("lake", "orders") is None
    assert catalog.get_table("nowhere", "orders") is None
    assert catalog.delete_table("lake", "orders") is False
    catalog.put_table(orders)

    assert catalog.delete_table("lake", "orders") is True
    assert catalog.get_table("lake", "orders") is None


def test_the_select_of_a_view_is_decoded(catalog: GlueCatalog) -> None:
    client = boto3.client("glue", "us-east-1")
    definition = b64encode(json.dumps({"originalSql": "SELECT 1 AS n", "catalog": "awsdatacatalog"}).encode()).decode()
    for name, text in (("trinos", f"/* Presto View: {definition} */"), ("sparks", "SELECT 2 AS n")):
        client.create_table(DatabaseName="lake", TableInput={"Name": name, "ViewOriginalText": text})
    assert catalog.view_sql("lake", "trinos") == "SELECT 1 AS n"
    assert catalog.view_sql("lake", "sparks") == "SELECT 2 AS n"
    assert catalog.view_sql("lake", "missing") is None


def test_tables_are_listed_by_name(catalog: GlueCatalog, orders: TableDefinition) -> None:
    catalog.put_table(orders)
    catalog.put_table(dataclasses.replace(orders, name="lines"))

    assert catalog.table_names("lake") == ["lines", "orders"]
    assert catalog.table_names("nowhere") == []


def test_an_error_names_the_object(catalog: GlueCatalog, orders: TableDefinition) -> None:
    with pytest.raises(AwsRequestFailed, match=r"Cannot write the Glue table nowhere\.orders:") as failed:
        catalog.put_table(dataclasses.replace(orders, database="nowhere"))

    assert failed.value.code == "EntityNotFoundException"


def test_an_unreachable_server_is_reported_with_the_hint() -> None:
    glue = GlueCatalog(
        endpoint_url="http://127.0.0.1:9", access_key="k", secret_key="s", hint="Run `cdc-lake up`.", attempts=1
    )

    with pytest.raises(Unreachable) as unreachable:
        glue.table_names("lake")

    assert "http://127.0.0.1:9 does not answer" in unreachable.value.user_message
    assert unreachable.value.user_message.endswith("Run `cdc-lake up`.")


def test_a_hudi_table_has_the_parameters_of_each_engine(orders: TableDefinition) -> None:
    assert orders.location == "s3://bucket/lake/orders"
    assert orders.input_format.endswith("HoodieParquetInputFormat")
    assert orders.parameters["spark.sql.sources.provider"] == "hudi"
    assert [each.name for each in orders.columns][:2] == ["_hoodie_commit_time", "_hoodie_commit_seqno"]
    assert orders.columns[5:] == tuple(COLUMNS)


def test_a_merge_on_read_table_has_a_compacted_and_a_merged_table(
    catalog: GlueCatalog, orders: TableDefinition
) -> None:
    for each in merge_on_read(orders):
        assert catalog.put_table(each) is True
        assert catalog.put_table(each) is False
    assert catalog.table_names("lake") == ["orders_ro", "orders_rt"]
    compacted, merged = catalog.get_table("lake", "orders_ro"), catalog.get_table("lake", "orders_rt")
    assert compacted is not None
    assert merged is not None
    assert compacted.location == merged.location == orders.location
    assert compacted.columns == merged.columns == orders.columns
    assert compacted.input_format == orders.input_format
    assert merged.input_format == "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
    read_optimized = [each.serde_parameters["hoodie.query.as.ro.table"] for each in (compacted, merged)]
    assert read_optimized == ["true", "false"]


def test_sparks_schema_is_split_into_parameters() -> None:
    key = GlueColumn("customer_id", "string")
    table = hudi_table("lake", "t", "s3://b/t", COLUMNS, partition_keys=[key], spark_schema="x" * 9000)

    parts = [table.parameters[f"spark.sql.sources.schema.part.{index}"] for index in range(3)]
    assert table.parameters["spark.sql.sources.schema.numParts"] == "3"
    assert "".join(parts) == "x" * 9000
    assert table.parameters["spark.sql.sources.schema.partCol.0"] == "customer_id"


@pytest.mark.parametrize(
    ("database", "name", "columns", "message"),
    [
        ("Lake", "t", COLUMNS, "lower case"),
        ("lake", "T", COLUMNS, "lower case"),
        ("", "t", COLUMNS, "the name of the database is empty"),
        ("lake", "", COLUMNS, "the name of the table is empty"),
        ("lake", "t", [GlueColumn("a", "int"), GlueColumn("A", "int")], "more than one column is called a"),
    ],
)
def test_names_that_glue_would_change_are_rejected(
    database: str, name: str, columns: list[GlueColumn], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        hudi_table(database, name, "s3://b/t", columns)


@pytest.mark.parametrize("processed", [True, False])
def test_existing_partitions_are_updated_also_if_glue_does_not_return_them_at_once(
    catalog: GlueCatalog, orders: TableDefinition, monkeypatch: pytest.MonkeyPatch, processed: bool
) -> None:
    """BatchGetPartition may return keys as unprocessed, which says nothing about their existence."""
    raw = dataclasses.replace(orders, partition_keys=(GlueColumn("day", "string"),))
    catalog.put_table(raw)
    assert catalog.put_partitions(raw, ["day=1", "day=2"]) == 2
    call = getattr(BaseClient, "_make_api_call")  # noqa: B009 - the type stubs lack it

    def limited(client: BaseClient, operation: str, parameters: dict[str, Any]) -> object:
        if operation == "BatchGetPartition" and not processed:
            return {"Partitions": [], "UnprocessedKeys": parameters["PartitionsToGet"]}
        return call(client, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", limited)
    wider = dataclasses.replace(raw, columns=(*raw.columns, GlueColumn("ship_city", "string")))
    assert catalog.put_partitions(wider, ["day=1", "day=2", "day=3"], update=True) == 1
    found = boto3.client("glue", "us-east-1").get_partitions(DatabaseName="lake", TableName="orders")["Partitions"]
    assert {each["Values"][0]: each["StorageDescriptor"]["Columns"][-1]["Name"] for each in found} == dict.fromkeys(
        "123", "ship_city"
    )
