"""The landing job commits only while its caller still holds the lease."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from cdc_lake.contract.errors import LeaseLostError, RaceLostError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.table import lease
from cdc_lake.jobs.landing import land
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake.jobs.landing.typed_rows import TypedLanding
from cdc_lake_tests.helpers.memory_store import MemoryLocation, MemoryStore

KEY = object_names.landing_lease_key("shop", "orders")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """A bucket, with the part of the job that needs Spark replaced."""
    monkeypatch.setattr(land, "_write", lambda _spec, spans, _write: (spans, (), []))
    return MemoryStore()


def run(store: MemoryStore, claim: lease.Claim | None) -> land.LandReport:
    """Run the job on a topic that contains only transaction markers."""
    return land.run(cast(SparkSession, None), replace(spec(store), claim=claim))


def spec(store: MemoryStore) -> LandSpec:
    """Return the spec of a landing of three offsets, without a lease."""
    location = cast(S3Location, MemoryLocation(store))
    return LandSpec(location, "shop", "orders", "id-1", {0: 0}, {0: 3}, "", 0, {})


def test_landing_commits_under_its_lease(store: MemoryStore) -> None:
    with lease.held(store, KEY, "ours") as held:
        assert run(store, held.claim).manifest == 1


def test_landing_commits_nothing_after_another_writer_took_the_lease(store: MemoryStore) -> None:
    with lease.held(store, KEY, "ours") as held:
        lost_claim = held.claim
    with (
        lease.held(store, KEY, "reset 1"),
        pytest.raises(
            LeaseLostError,
            match=r"^Cannot continue: the lease leases/shop/_landing/orders\.json of ours .* taken by reset 1",
        ),
    ):
        run(store, lost_claim)
    assert Chain(store, "shop", "orders").head() is None


def test_landing_commits_nothing_after_another_writer_released_the_lease(store: MemoryStore) -> None:
    with lease.held(store, KEY, "ours") as held:
        lost_claim = held.claim
    with lease.held(store, KEY, "reset 1"):
        pass
    with pytest.raises(LeaseLostError):
        run(store, lost_claim)
    assert Chain(store, "shop", "orders").head() is None


def test_landing_without_a_lease_commits(store: MemoryStore) -> None:
    assert run(store, None).manifest == 1


def test_unlisted_parquet_objects_are_deleted_after_an_empty_manifest_is_committed(store: MemoryStore) -> None:
    """The empty manifest takes number 1, so a paused landing that would list the object cannot commit."""
    unlisted = ObjectName("shop", "orders", 0, 0, 2, "parquet").key
    store.write(unlisted, b"")
    with lease.held(store, KEY, "ours") as held:
        typed = TypedLanding("sales.orders", "gzip")
        typed_spec = replace(spec(store), claim=held.claim, landing="parquet", typed=typed)
        assert land.run(cast(SparkSession, None), typed_spec).manifest == 2
    assert unlisted not in store.objects
    fence, landed = Chain(store, "shop", "orders").since(0)
    assert [(span.first, span.next) for span in (*fence.spans, *landed.spans)] == [(0, 0), (0, 3)]
    with pytest.raises(RaceLostError):
        Chain(store, "shop", "orders").append(fence.model_copy(update={"attempt": "the paused one"}))
