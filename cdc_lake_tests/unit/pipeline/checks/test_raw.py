"""Checks of landing: no gap in the chain, no missing objects, landed to the topic's end, no dead letters."""

from __future__ import annotations

import json

import dagster as dg

from cdc_lake.contract.objects import chain_id, dead_letters, object_names
from cdc_lake.pipeline.checks import raw as raw_checks
from cdc_lake_tests.fakes.dagster import evaluate
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop


def check(shop: Shop, name: str) -> dg.AssetCheckResult:
    """Evaluate one check of the orders' raw objects."""
    found = {each.check_key.name: each for each in raw_checks.build(shop.orders)}
    resources: dict[str, object] = {"store": shop.store}
    if name == "landed_to_the_end":
        resources["kafka"] = shop.kafka
    return evaluate(found[name], **resources)


def landed(shop: Shop, batches: int = 3) -> list[str]:
    """Land one order per manifest; return the keys of the manifests."""
    for number in range(batches):
        shop.order(number)
        shop.land(shop.orders)
    return [object_names.manifest_key("shop", shop.orders.topic, number) for number in range(1, batches + 1)]


def raw_objects(shop: Shop) -> list[str]:
    """Return the keys of the orders' raw objects."""
    return [key for key in sorted(shop.bucket.objects) if "/partition=0/shop.sales.orders+" in key]


def test_manifests_contiguous_passes_and_counts(shop: Shop) -> None:
    landed(shop)
    found = check(shop, "manifests_contiguous")
    assert found.passed
    assert (found.metadata["manifests"].value, found.metadata["objects"].value) == (3, 3)


def test_an_empty_chain_passes(shop: Shop) -> None:
    assert check(shop, "manifests_contiguous").passed


def test_a_missing_manifest_is_reported(shop: Shop) -> None:
    second = landed(shop)[1]
    shop.bucket.delete([second])
    found = check(shop, "manifests_contiguous")
    assert not found.passed
    assert "manifest 2 is missing, but manifest 3 exists" in str(found.metadata["fault"].value)


def test_a_gap_between_manifests_is_reported(shop: Shop) -> None:
    second = landed(shop)[1]
    manifest = json.loads(shop.bucket.objects[second].body)
    manifest["spans"][0]["first"] += 1
    manifest["objects"] = []
    manifest["spans"][0]["next"] += 1
    shop.bucket.write(second, json.dumps(manifest).encode())
    found = check(shop, "manifests_contiguous")
    assert not found.passed
    assert "partition 0 starts at offset 2 in manifest 2, but should" in str(found.metadata["fault"].value)


def test_a_missing_object_is_reported(shop: Shop) -> None:
    landed(shop)
    lost = raw_objects(shop)[1]
    shop.bucket.delete([lost])
    found = check(shop, "manifests_contiguous")
    assert not found.passed
    assert found.metadata["missing_or_changed"].value == [lost]


def test_a_changed_object_is_reported(shop: Shop) -> None:
    landed(shop)
    changed = raw_objects(shop)[0]
    shop.bucket.write(changed, shop.bucket.objects[changed].body.replace(b"ANNE", b"ANNA"))
    found = check(shop, "manifests_contiguous")
    assert not found.passed
    assert found.metadata["missing_or_changed"].value == [changed]


def requests(shop: Shop, name: str) -> int:
    """Return the number of store requests that a passing check makes."""
    shop.bucket.forget_requests()
    assert check(shop, name).passed
    return shop.bucket.total


def test_checking_new_manifests_costs_the_same_on_a_longer_chain(shop: Shop) -> None:
    costs = []
    for batches in (1, 2, 40):
        landed(shop, batches)
        check(shop, "manifests_contiguous")
        landed(shop, 1)
        costs.append(requests(shop, "manifests_contiguous"))
    assert costs[0] == costs[1] == costs[2] <= 8
    found = check(shop, "manifests_contiguous")
    assert (found.metadata["manifests"].value, found.metadata["verified_to"].value) == (0, 46)


def test_manifests_whole_verifies_the_whole_chain(shop: Shop) -> None:
    landed(shop)
    assert check(shop, "manifests_contiguous").passed
    shop.bucket.delete([raw_objects(shop)[0]])
    assert check(shop, "manifests_contiguous").passed
    found = check(shop, "manifests_whole")
    assert (found.passed, found.metadata["manifests"].value, found.metadata["objects"].value) == (False, 3, 3)
    assert "partition=0/shop.sales.orders" in str(found.metadata["missing_or_changed"].value)


def test_damage_is_reported_until_it_is_repaired(shop: Shop) -> None:
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


def test_a_verified_manifest_that_was_replaced_is_reported(shop: Shop) -> None:
    third = landed(shop)[2]
    check(shop, "manifests_contiguous")
    replaced = json.loads(shop.bucket.objects[third].body) | {"attempt": "another"}
    shop.bucket.write(third, json.dumps(replaced).encode())
    found = check(shop, "manifests_contiguous")
    assert not found.passed
    assert "Cannot continue after manifest 3 of topic shop.sales.orders: attempt " in str(found.metadata["fault"].value)


def test_a_reset_restarts_the_verification(shop: Shop) -> None:
    landed(shop)
    check(shop, "manifests_contiguous")
    chain_id.renew(shop.bucket, "shop")
    assert check(shop, "manifests_contiguous").metadata["verified_to"].value == 0


def test_landed_to_the_end_passes(shop: Shop) -> None:
    landed(shop)
    assert check(shop, "landed_to_the_end").passed


def test_an_empty_topic_is_landed_to_the_end(shop: Shop) -> None:
    assert check(shop, "landed_to_the_end").passed


def test_up_to_flush_records_may_be_waiting(shop: Shop) -> None:
    landed(shop)
    for number in range(5):  # flush_records
        shop.order(100 + number)
    assert check(shop, "landed_to_the_end").passed
    shop.order(200)
    found = check(shop, "landed_to_the_end")
    assert not found.passed
    assert found.metadata["offsets_behind"].value == 6


def test_a_recreated_topic_with_the_same_end_offset_is_not_landed(shop: Shop) -> None:
    landed(shop)
    shop.kafka.make(shop.orders.topic)
    for number in range(3):
        shop.order(number)
    found = check(shop, "landed_to_the_end")
    assert not found.passed
    assert found.metadata["same_topic"].value is False


def test_a_topic_that_lost_landed_records_is_reported(shop: Shop) -> None:
    landed(shop)
    topic = shop.kafka._topics[shop.orders.topic]
    topic.records[0].pop()
    found = check(shop, "landed_to_the_end")
    assert not found.passed
    assert found.metadata["offsets_behind"].value == -1


def test_records_that_expired_before_landing_are_reported(shop: Shop) -> None:
    landed(shop, 1)
    shop.order(7)
    shop.order(8)
    shop.kafka._topics[shop.orders.topic].begins[0] = 2
    found = check(shop, "landed_to_the_end")
    assert not found.passed
    assert found.metadata["offsets_expired"].value == 1


def test_open_dead_letters_fail_until_they_are_closed(shop: Shop) -> None:
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
