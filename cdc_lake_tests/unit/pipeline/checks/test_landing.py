"""The landing's checks: the chain has no gap and reaches the end, its objects are there, no dead letters."""

from __future__ import annotations

import json

import dagster as dg

from cdc_lake.contract.objects import chain_id, dead_letters, object_names
from cdc_lake.pipeline.checks import landing
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.fakes.dagster import evaluate


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
    return [object_names.manifest_key("shop", shop.orders.topic, number) for number in range(1, batches + 1)]


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


def requests(shop: World, name: str) -> int:
    """Requests to the store that a check takes, once it has run."""
    shop.bucket.forget_requests()
    assert check(shop, name).passed
    return shop.bucket.total


def test_a_check_of_what_is_new_costs_what_is_new(shop: World) -> None:
    costs = []
    for batches in (1, 2, 40):
        landed(shop, batches)
        check(shop, "manifests_contiguous")
        landed(shop, 1)
        costs.append(requests(shop, "manifests_contiguous"))
    assert costs[0] == costs[1] == costs[2] <= 8
    found = check(shop, "manifests_contiguous")
    assert (found.metadata["manifests"].value, found.metadata["verified_to"].value) == (0, 46)


def test_the_whole_chain_is_verified_on_request(shop: World) -> None:
    landed(shop)
    assert check(shop, "manifests_contiguous").passed
    shop.bucket.delete([raw_objects(shop)[0]])
    assert check(shop, "manifests_contiguous").passed
    found = check(shop, "manifests_whole")
    assert (found.passed, found.metadata["manifests"].value, found.metadata["objects"].value) == (False, 3, 3)
    assert "partition=0/shop.sales.orders" in str(found.metadata["missing_or_changed"].value)


def test_what_is_damaged_stays_red_until_it_is_repaired(shop: World) -> None:
    landed(shop)
    check(shop, "manifests_contiguous")
    shop.order(7)
    shop.land(shop.orders)
    key = raw_objects(shop)[-1]
    lost = shop.bucket.objects.pop(key)
    for _ in range(2):
        assert check(shop, "manifests_contiguous").metadata["missing_or_changed"].value == [key]
        shop.order(8)
        shop.land(shop.orders)
    shop.bucket.objects[key] = lost
    found = check(shop, "manifests_contiguous")
    assert (found.passed, found.metadata["manifests"].value) == (True, 3)


def test_a_verified_manifest_that_was_replaced(shop: World) -> None:
    third = landed(shop)[2]
    check(shop, "manifests_contiguous")
    replaced = json.loads(shop.bucket.objects[third].body) | {"attempt": "another"}
    shop.bucket.write(third, json.dumps(replaced).encode())
    found = check(shop, "manifests_contiguous")
    assert not found.passed
    assert "manifest 3 of topic shop.sales.orders is another one" in str(found.metadata["fault"].value)


def test_a_reset_begins_the_verification_again(shop: World) -> None:
    landed(shop)
    check(shop, "manifests_contiguous")
    chain_id.renew(shop.bucket, "shop")
    assert check(shop, "manifests_contiguous").metadata["verified_to"].value == 0


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
    assert found.description == "Records that are not in the lake: 1. `cdc-lake dlq list shop` lists their causes."
    dead_letters.close(shop.bucket, "shop", letter, "dropped", None)
    assert check(shop, "dead_letters_empty").passed
