"""The landing's checks: the chain has no gap and reaches the end, its objects are there, no dead letters."""

from __future__ import annotations

import json

import dagster as dg

from cdc_lake.contract import dead_letters, names
from cdc_lake.pipeline.checks import landing
from cdc_lake_tests.fakes.dagster import evaluate
from cdc_lake_tests.world import World


def check(shop: World, name: str) -> dg.AssetCheckResult:
    """What one check of the orders' raw objects finds."""
    found = {each.check_key.name: each for each in landing.build(shop.orders)}
    resources: dict[str, object] = {"store": shop.store}
    if name == "landed_to_the_end":
        resources["kafka"] = shop.kafka
    return evaluate(found[name], **resources)


def landed(shop: World, batches: int = 3) -> list[str]:
    """Land one order a manifest; the manifests' keys."""
    for number in range(batches):
        shop.order(number)
        shop.land(shop.orders)
    return [names.manifest_key("shop", shop.orders.topic, number) for number in range(1, batches + 1)]


def raw_objects(shop: World) -> list[str]:
    """The keys of the orders' raw objects."""
    return [key for key in sorted(shop.bucket.objects) if "/partition=0/shop.sales.orders+" in key]


def test_contiguous(shop: World) -> None:
    landed(shop)
    found = check(shop, "manifests_contiguous")
    assert found.passed
    assert (found.metadata["manifests"].value, found.metadata["objects"].value) == (3, 3)


def test_a_chain_that_is_empty_has_no_gap(shop: World) -> None:
    assert check(shop, "manifests_contiguous").passed


def test_a_manifest_is_missing(shop: World) -> None:
    second = landed(shop)[1]
    shop.bucket.delete([second])
    found = check(shop, "manifests_contiguous")
    assert not found.passed
    assert "manifest 2 is missing before 3" in str(found.metadata["fault"].value)


def test_manifests_that_do_not_meet(shop: World) -> None:
    second = landed(shop)[1]
    manifest = json.loads(shop.bucket.objects[second].body)
    manifest["spans"][0]["first"] += 1
    manifest["objects"] = []
    manifest["spans"][0]["next"] += 1
    shop.bucket.write(second, json.dumps(manifest).encode())
    found = check(shop, "manifests_contiguous")
    assert not found.passed
    assert "a gap between offset 1" in str(found.metadata["fault"].value)


def test_an_object_is_missing(shop: World) -> None:
    landed(shop)
    lost = raw_objects(shop)[1]
    shop.bucket.delete([lost])
    found = check(shop, "manifests_contiguous")
    assert not found.passed
    assert found.metadata["missing_or_changed"].value == [lost]


def test_an_object_was_changed(shop: World) -> None:
    landed(shop)
    changed = raw_objects(shop)[0]
    shop.bucket.write(changed, shop.bucket.objects[changed].body.replace(b"ANNE", b"ANNA"))
    found = check(shop, "manifests_contiguous")
    assert not found.passed
    assert found.metadata["missing_or_changed"].value == [changed]


def test_landed_to_the_end(shop: World) -> None:
    landed(shop)
    assert check(shop, "landed_to_the_end").passed


def test_an_empty_topic_is_landed(shop: World) -> None:
    assert check(shop, "landed_to_the_end").passed


def test_so_many_records_may_wait(shop: World) -> None:
    landed(shop)
    for number in range(5):  # flush_records
        shop.order(100 + number)
    assert check(shop, "landed_to_the_end").passed
    shop.order(200)
    found = check(shop, "landed_to_the_end")
    assert not found.passed
    assert found.metadata["offsets_behind"].value == 6


def test_a_topic_made_again_is_not_landed_though_it_ends_where_the_old_one_did(shop: World) -> None:
    landed(shop)
    shop.kafka.make(shop.orders.topic)
    for number in range(3):
        shop.order(number)
    found = check(shop, "landed_to_the_end")
    assert not found.passed
    assert found.metadata["same_topic"].value is False


def test_a_topic_that_lost_records(shop: World) -> None:
    landed(shop)
    topic = shop.kafka._topics[shop.orders.topic]
    topic.records[0].pop()
    found = check(shop, "landed_to_the_end")
    assert not found.passed
    assert found.metadata["offsets_behind"].value == -1


def test_records_that_expired_before_they_were_landed(shop: World) -> None:
    landed(shop, 1)
    shop.order(7)
    shop.order(8)
    shop.kafka._topics[shop.orders.topic].begins[0] = 2
    found = check(shop, "landed_to_the_end")
    assert not found.passed
    assert found.metadata["offsets_expired"].value == 1


def test_dead_letters(shop: World) -> None:
    assert check(shop, "dead_letters_empty").passed
    letter = dead_letters.DeadLetter.of(shop.orders.topic, 0, 3, "not JSON", b"?")
    dead_letters.put(shop.bucket, "shop", [letter])
    found = check(shop, "dead_letters_empty")
    assert not found.passed
    assert found.metadata["dead_letters"].value == 1
    assert found.metadata["first"].value == {"shop.sales.orders+0+3": "not JSON"}
    assert found.description == "1 records are not in the lake: `cdc-lake dlq list shop` tells why"
    dead_letters.close(shop.bucket, "shop", letter, "dropped", None)
    assert check(shop, "dead_letters_empty").passed
