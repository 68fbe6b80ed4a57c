"""S3Store on the local S3 server: conditional puts, listings in key order, and deletes of many objects."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cdc_lake.contract.objects.store import PreconditionFailedError, S3Location, S3Store, StoredObject
from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from infra.local.stack.attach import load_endpoints

MANY = 2_001


@pytest.fixture(scope="module")
def store() -> Iterator[S3Store]:
    """The bucket of a running S3 server."""
    with scratch_home() as home, running_stack(home, ("s3",)):
        at = load_endpoints(home)
        secret = at.s3_secret_key.get_secret_value()
        yield S3Location(at.bucket, at.s3_endpoint, at.region, at.s3_access_key, secret).store()


def test_an_object_is_put_once_and_replaced_under_its_etag(store: S3Store) -> None:
    etag = store.put_new("put/a", b"1", {"attempt": "x"})
    assert store.get("put/a") == StoredObject("put/a", b"1", etag, {"attempt": "x"})
    with pytest.raises(PreconditionFailedError, match=r"put/a exists, was replaced or deleted"):
        store.put_new("put/a", b"2")
    changed = store.replace("put/a", b"3", etag)
    assert changed != etag
    for key, tag in (("put/a", etag), ("put/missing", etag)):
        with pytest.raises(PreconditionFailedError, match=key):
            store.replace(key, b"4", tag)
    assert store.get("put/a") == StoredObject("put/a", b"3", changed, {})
    assert (store.exists("put/a"), store.exists("put/"), store.exists("put/missing")) == (True, False, False)
    assert store.get("put/missing") is None


def test_a_listing_is_in_key_order_and_can_begin_after_a_key(store: S3Store) -> None:
    for key in ("list/b/1", "list/a", "list/b/10", "list/c/2/3", "list/b/2", "lists/a"):
        store.put_new(key, key.encode())
    assert [(item.key, item.size) for item in store.scan("list/")] == [
        (key, len(key)) for key in ("list/a", "list/b/1", "list/b/10", "list/b/2", "list/c/2/3")
    ]
    assert [item.key for item in store.scan("list/", after="list/b/10")] == ["list/b/2", "list/c/2/3"]
    assert [item.key for item in store.scan("list/", recursive=False)] == ["list/a"]
    assert store.folders("list/") == ["b", "c"]
    [item] = store.scan("list/a")
    found = store.get("list/a")
    assert found is not None
    assert item.etag == found.etag


def test_more_objects_than_one_request_deletes(store: S3Store) -> None:
    keys = [f"many/{number:04d}" for number in range(MANY)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: store.put_new(key, b""), keys))
    assert [item.key for item in store.scan("many/")] == keys, "a page has 1,000 keys"
    assert store.delete(iter([*keys[:-1], "many/missing"])) == MANY
    assert [item.key for item in store.scan("many/")] == keys[-1:]
    assert store.delete([]) == 0
