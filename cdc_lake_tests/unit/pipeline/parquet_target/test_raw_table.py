"""The catalog's entries of partitioned and of JSON objects, and objects of another kind than the YAML's."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import hive_partitions
from cdc_lake.contract.objects.manifest import LandedObject, Manifest
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema import captured_schema
from cdc_lake.pipeline.operations import land_and_apply
from cdc_lake.pipeline.parquet_target import raw_table
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake_tests.fakes.aws.glue import FakeGlue
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.objects.landed import manifest
from cdc_lake_tests.unit.pipeline.parquet_shop import parquet_shop
from cdc_lake_tests.unit.pipeline.parquet_target.recording_athena import RecordingAthena


def orders(folder: Path, landing: str) -> PipelineTable:
    """Return the orders of a shop with a Parquet target, with this landing."""
    return parquet_shop(folder, landing).tables[0]


def landed(table: PipelineTable, extension: str, *folders: str) -> Manifest:
    """Return a manifest of one object in each folder; "" for an object without one."""
    items = []
    for place, folder in enumerate(folders):
        fields = (folder,) if folder else ()
        name = ObjectName("shop", table.topic, 0, place, place, extension, fields=fields)
        items.append(
            LandedObject(
                key=name.key,
                partition=0,
                first=place,
                last=place,
                records=1,
                bytes=2,
                sha256="",
                etag="",
                runs=((place, 1),),
            )
        )
    return manifest(1, {0: (0, len(folders))}, objects=tuple(items))


def registered(table: PipelineTable, shop: Shop, made: Manifest) -> FakeGlue:
    """Register a manifest, and return the catalog."""
    glue = FakeGlue()
    versions = captured_schema.require_versions(shop.bucket, "shop", "sales.orders")
    boundary = "000000-0-00000000000000000000"
    raw_table.register(table, versions, boundary, "lake", [made], [made], glue, RecordingAthena(glue))  # type: ignore[arg-type]
    return glue


def test_a_partition_column_is_a_key_of_the_table_and_not_a_column(shop: Shop, tmp_path: Path) -> None:
    table = orders(tmp_path, "format: parquet, partition_by: [customer_id]")
    peru = hive_partitions.folder("customer_id", "Peru: Lima/Callao")
    glue = registered(table, shop, landed(table, "parquet", "customer_id=Chile", peru, "customer_id=Chile"))
    raw = glue.get_table("shop_lake", "orders_raw")
    assert raw is not None
    assert [(key.name, key.type) for key in raw.partition_keys] == [
        ("customer_id", "string"),
        ("__epoch", "int"),
        ("__partition", "int"),
    ]
    assert "customer_id" not in {column.name for column in raw.columns}
    assert {"total", "__offset", "__schema_version"} <= {column.name for column in raw.columns}
    assert raw.serde.endswith("ParquetHiveSerDe")
    assert glue._partitions["shop_lake.orders_raw"] == {
        f"{folder}/__epoch=0/__partition=0" for folder in ("customer_id=Chile", peru)
    }


def test_a_table_of_json_has_the_types_of_fields(shop: Shop, tmp_path: Path) -> None:
    table = orders(tmp_path, "partition_by: [customer_id]")
    glue = registered(table, shop, landed(table, "json", "customer_id=Chile"))
    raw = glue.get_table("shop_lake", "orders_raw")
    assert raw is not None
    types = {column.name: column.type for column in raw.columns}
    assert (types["order_id"], types["total"], "__offset" in types) == ("int", "string", False)
    assert raw.parameters["classification"] == "json"


@pytest.mark.parametrize(
    ("extension", "folder"), [("json", "customer_id=Peru"), ("parquet", ""), ("parquet", "order_id=1")]
)
def test_objects_of_another_kind_are_not_registered(shop: Shop, tmp_path: Path, extension: str, folder: str) -> None:
    table = orders(tmp_path, "format: parquet, partition_by: [customer_id]")
    with pytest.raises(ContractError, match=r"its raw objects have another format.*`cdc-lake reset shop`"):
        registered(table, shop, landed(table, extension, folder))


def test_a_table_that_would_have_two_kinds_of_objects_is_not_landed(shop: Shop, tmp_path: Path) -> None:
    shop.order(1)
    shop.land(shop.orders)
    shop.order(2)
    table = orders(tmp_path, "format: parquet")
    where, run = S3Location("shop"), shop.spark.run
    with pytest.raises(ContractError, match="Cannot land and register table orders: its raw objects have another"):
        land_and_apply.land(table, shop.source, shop.kafka, where, run, "the test")
    assert land_and_apply.land(shop.orders, shop.source, shop.kafka, where, run, "the test").report, "only Hudi"


def test_the_memory_store_lists_folders() -> None:
    store = MemoryStore()
    for key in ("a/b/c", "a/b/d", "a/c/e", "a/f", "b/g"):
        store.write(key, b"")
    assert store.folders("a/") == ["b", "c"]
