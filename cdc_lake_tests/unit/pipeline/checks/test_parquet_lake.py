"""The check of a Parquet target's objects: which ones no manifest lists, and which of these can be deleted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import parquet_lake
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.parquet_shop import parquet_shop


def test_an_object_can_be_deleted_if_no_later_manifest_can_list_it(shop: Shop, tmp_path: Path) -> None:
    shop.order(1)
    shop.land(shop.orders)
    table = parquet_shop(tmp_path / "parquet", "format: json").tables[0]
    store = location(shop.resources["store"]).store()
    head = Chain(store, table.pipeline.name, table.topic).head()
    assert head is not None
    name = ObjectName.parse(head.objects[0].key)
    assert name is not None
    end = head.next_offsets()[name.partition]
    can_be_deleted = {
        replace(name, first=end, last=end): False,  # the next landing can list it
        replace(name, first=end, last=end, epoch=head.epoch + 1): False,  # a landing of the next epoch may be running
        replace(name, last=name.last + 50): True,
        replace(name, first=end, last=end, chain="earlier"): True,
    }
    for each in can_be_deleted:
        store.put_new(each.key, b"")
    assert parquet_lake.unlisted(store, table) == {each.key: value for each, value in can_be_deleted.items()}
