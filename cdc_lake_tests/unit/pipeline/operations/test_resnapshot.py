"""The steps of a resnapshot over fakes: their order, cut off at each of them and run again, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import (
    ContractError,
    EpochUnopenedError,
    LeaseHeldError,
    ManifestGapError,
    SnapshotNotAppliedError,
    SourceBrokenError,
    TooManyDeadLettersError,
)
from cdc_lake.contract.objects import chain_id, object_names
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.source.epochs import Completion, Epochs
from cdc_lake.contract.table import lease, timeline
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.landing import land as landing
from cdc_lake.jobs.maintenance import sweep
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.operations import land_and_apply
from cdc_lake.pipeline.operations.resnapshot import Systems, resnapshot
from cdc_lake.pipeline.source_health import stream_continuity
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.shop_pipeline import HEARTBEATS

PLACES = [name for name in failpoints.REGISTRY if name.startswith("resnapshot.")]
TABLES = [("sales", name) for name in ("orders", "customers", "cdc_heartbeat")]


class Engines:
    """The jobs, and Debezium: whenever the connector runs without an offset, it makes slot and snapshot."""

    def __init__(self, shop: World) -> None:
        self.shop = shop
        self.swept: list[sweep.SweepSpec] = []

    def run(self, job: Callable[[Any, Any], Any], spec: Any) -> Any:  # noqa: ANN401 - as the resource's
        """Run a job as LocalSpark does."""
        if job is landing.run:
            head = self._head(spec)
            if not landing.has_work(head, landing.pending(head, spec)):
                return landing.LandReport(None, 0, 0, 0, 0, 0.0)
            return self.shop.land_by(spec)
        if job is upsert.run:
            if not upsert.new_manifests(self.shop.bucket, spec):
                return upsert.UpsertReport(None, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)
            return self.shop.apply_by(spec)
        assert job is sweep.run
        commit = timeline.last_commit(self.shop.bucket, spec.table.prefix)
        if commit is not None and commit.checkpoint is not None:
            sweep.require_applied(self.shop.bucket, spec, commit.checkpoint)
        self.swept.append(spec)
        return sweep.SweepReport(None, 3, 0.0)

    def systems(self) -> Systems:
        """What a resnapshot works on."""
        shop = self.shop
        return Systems(
            postgres=shop.postgres,
            kafka=shop.kafka,
            connect=shop.connect,
            location=S3Location("shop"),
            run=self.run,
            config={"connector.class": "Debezium", "exactly.once.support": "required"},
            snapshot_seconds=1.0,
            lease_wait_seconds=0.0,
            settle_seconds=0.1,
        )

    def _head(self, spec: landing.LandSpec) -> Any:  # noqa: ANN401 - Manifest | None
        return Chain(self.shop.bucket, spec.pipeline, spec.topic).head()


@pytest.fixture
def engines(shop: World, monkeypatch: pytest.MonkeyPatch) -> Engines:
    """The shop in epoch 0, with rows in the lake, whose slot is lost."""
    shop.postgres.ensure_publication("shop_publication", TABLES)
    shop.connect.put(shop.flow.connector, {"connector.class": "Debezium", "exactly.once.support": "required"})
    stream_continuity.begin(shop.flow, shop.postgres, shop.connect, shop.bucket)
    shop.order(1)
    shop.carry()
    shop.order(2)
    shop.postgres.beat("sales")
    lose_slot(shop)
    shop.steps.done.clear()
    put = shop.connect.put

    def put_and_snapshot(_self: object, name: str, config: dict[str, str]) -> str:
        missing = shop.postgres.slot(shop.flow.slot) is None
        outcome = put(name, config)
        if missing:
            shop.connect.store(name, {"lsn": 995})
            shop.streaming = True
            shop.beat(snapshot="first")
            shop.order(1, snapshot="true")
        return outcome

    monkeypatch.setattr(type(shop.connect), "put", put_and_snapshot)
    return Engines(shop)


def lose_slot(shop: World) -> None:
    """The slot is dropped, so that nothing streams any more."""
    shop.postgres.drop_slot(shop.flow.slot)
    shop.streaming = False


def run(engines: Engines) -> list[str]:
    """Take a new snapshot; what is said."""
    return list(resnapshot(engines.shop.flow, engines.systems(), "the slot was lost"))


def opened(shop: World) -> dict[str, list[int]]:
    """The epochs of each table's manifests."""
    return {
        table.name: [one.epoch for one in table_progress.manifests(shop.bucket, table)] for table in shop.flow.tables
    }


def check_done(engines: Engines) -> None:
    """Epoch 1 is complete, everything is landed and applied, each table is swept to the snapshot."""
    shop = engines.shop
    epochs = Epochs(shop.bucket, "shop")
    current, completion = epochs.current(), epochs.completion(1)
    assert current is not None
    assert completion is not None
    assert (current.number, current.reason) == (1, "the slot was lost")
    assert completion.swept == {"orders": 3, "customers": 3}
    assert {spec.lsn for spec in engines.swept} == {completion.snapshot_lsn}
    assert opened(shop)["customers"] == [0, 1]
    assert opened(shop)["orders"] == [0, 0, 1, 1]
    assert upsert.new_manifests(shop.bucket, shop.orders.upsert_spec(S3Location("shop"), "t")) == []
    assert stream_continuity.examine(shop.flow, shop.postgres, shop.kafka, shop.connect, shop.bucket) == ()


def test_the_steps(engines: Engines) -> None:
    said = run(engines)
    check_done(engines)
    assert engines.shop.steps.done == ["stop cdc-lake-shop", "offsets cdc-lake-shop"]
    assert said[0] == "connector cdc-lake-shop is stopped"
    assert "orders: 1 records were left to land" in said
    assert said[-1] == "epoch 1 is complete"


@pytest.mark.parametrize("place", PLACES)
def test_cut_off_anywhere_it_goes_on(engines: Engines, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    failpoints._passes.clear()
    monkeypatch.setenv(failpoints.VARIABLE, f"{place}=raise")
    with pytest.raises(failpoints.FailpointReached, match=place):
        run(engines)
    monkeypatch.delenv(failpoints.VARIABLE)
    run(engines)
    check_done(engines)


def test_a_chain_without_its_first_manifest_sweeps_nothing(engines: Engines) -> None:
    """It would look empty: the epoch would be opened as manifest 1, which the upsert, at a later one, never applies,
    and the sweep would make a tombstone of every row.
    """
    shop = engines.shop
    shop.order(3)
    shop.carry()
    shop.bucket.delete([object_names.manifest_key("shop", shop.orders.topic, 1)])
    with pytest.raises(ManifestGapError, match=r"manifest 1 of topic shop\.sales\.orders is missing"):
        run(engines)
    assert engines.swept == []


def test_a_table_that_has_not_applied_the_epoch_is_not_swept(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = engines.shop
    skipped = upsert.UpsertReport(None, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(shop, "apply_by", lambda _spec: skipped)
        with pytest.raises(SnapshotNotAppliedError, match=r"epoch 1: it has applied manifest 1 of epoch 0"):
            run(engines)
    assert engines.swept == []
    run(engines)
    check_done(engines)


def test_a_chain_that_ends_in_another_epoch_is_not_swept(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its manifests were removed after the epoch was opened."""
    shop = engines.shop
    monkeypatch.setenv(failpoints.VARIABLE, "resnapshot.after_connector=raise")
    failpoints._passes.clear()
    with pytest.raises(failpoints.FailpointReached):
        run(engines)
    chain = Chain(shop.bucket, "shop", shop.orders.topic)
    with monkeypatch.context() as patch:
        patch.setattr(land_and_apply, "land", lambda *_: landing.LandReport(None, 0, 0, 0, 0, 0.0))
        patch.setattr("cdc_lake.pipeline.operations.resnapshot._open", lambda *_: False)
        for number in range(chain.length(), 0, -1):
            if chain.read(number).epoch == 1:
                shop.bucket.delete([chain.key(number)])
        with pytest.raises(SnapshotNotAppliedError, match="its manifest chain ends in epoch 0"):
            run(engines)
    assert engines.swept == []


@pytest.mark.parametrize(
    ("manifest", "attempt", "found"),
    [
        (4, None, None),
        (5, None, None),
        (0, None, "manifest 0 of epoch 0"),
        (2, None, "manifest 2 of epoch 0"),
        (3, None, "manifest 3, and the snapshot ends in manifest 4"),
        (4, "another", "another manifest 4 than the chain has now"),
    ],
)
def test_what_a_sweep_requires(engines: Engines, manifest: int, attempt: str | None, found: str | None) -> None:
    shop = engines.shop
    run(engines)
    shop.order(5)
    shop.land(shop.orders)
    assert opened(shop)["orders"] == [0, 0, 1, 1, 1]
    spec = sweep.SweepSpec(shop.orders.upsert_spec(S3Location("shop"), "t"), 1, 4, 1, 1)
    applied = timeline.Checkpoint(topic="t", topic_id="x", manifest=manifest, attempt=attempt, schema_version=1)
    if found is None:
        sweep.require_applied(shop.bucket, spec, applied)
        return
    with pytest.raises(SnapshotNotAppliedError, match=f"^Cannot sweep table orders .* it has applied {found}"):
        sweep.require_applied(shop.bucket, spec, applied)


def test_a_resnapshot_that_was_paused_across_a_reset_opens_no_epoch_in_the_next_chain(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = engines.shop
    monkeypatch.setattr(failpoints, "reached", lambda name: _renew(shop) if name == "resnapshot.after_epoch" else None)
    with pytest.raises(EpochUnopenedError):
        run(engines)
    assert Chain(shop.bucket, "shop", shop.orders.topic).head() is None


def _renew(shop: World) -> None:
    chain_id.renew(shop.bucket, "shop")


def test_another_one_begins_another_epoch(engines: Engines) -> None:
    run(engines)
    lose_slot(engines.shop)
    run(engines)
    assert opened(engines.shop)["orders"] == [0, 0, 1, 1, 2, 2]


def test_expired_records_are_jumped_over(engines: Engines) -> None:
    shop = engines.shop
    shop.kafka._topics[shop.orders.topic].begins[0] = 2
    said = run(engines)
    assert any("what was not landed can't be" in line and "expired before they were landed" in line for line in said)
    assert opened(shop)["orders"] == [0, 1, 1]
    [opening] = [one for one in table_progress.manifests(shop.bucket, shop.orders) if one.opens is not None]
    assert "expired before they were landed" in (opening.opens or "")


def test_what_stands_in_the_way_of_landing_the_rest_is_told_and_changes_nothing(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = engines.shop

    def refused(_spec: object) -> None:
        raise TooManyDeadLettersError("topic t: 5 of 9 records are dead letters.")

    with monkeypatch.context() as patch:
        patch.setattr(shop, "land_by", refused)
        with pytest.raises(TooManyDeadLettersError) as caught:
            run(engines)
    assert caught.value.user_message == (
        "topic t: 5 of 9 records are dead letters. Connector cdc-lake-shop is stopped, and nothing else was changed. "
        "Run `cdc-lake resnapshot shop` again once this is mended, or materialise shop/topic to let it go on"
    )
    assert opened(shop)["orders"] == [0]
    assert "offsets cdc-lake-shop" not in shop.steps.done
    run(engines)
    check_done(engines)


def test_a_topic_made_again_goes_on(engines: Engines) -> None:
    shop = engines.shop
    shop.kafka.make(shop.orders.topic)
    run(engines)
    assert opened(shop)["orders"] == [0, 1, 1]
    objects = [item.key for one in table_progress.manifests(shop.bucket, shop.orders) for item in one.objects]
    assert len(set(objects)) == len(objects) == 2


def test_a_deleted_topic_is_made_anew(engines: Engines) -> None:
    shop = engines.shop
    for topic in (shop.orders.topic, HEARTBEATS):
        shop.kafka.delete_topic(topic)
    run(engines)
    assert opened(shop)["orders"] == [0, 1, 1]


def test_the_publication_is_put_right(engines: Engines) -> None:
    shop = engines.shop
    shop.postgres.drop_publication("shop_publication")
    assert "publication shop_publication created" in run(engines)
    check_done(engines)


def test_a_publication_that_holds_back_is_refused_before_the_connector_starts(engines: Engines) -> None:
    shop = engines.shop
    shop.postgres.republish("shop_publication", "version", held_back="delete")
    with pytest.raises(SourceBrokenError, match="does not publish every delete"):
        run(engines)
    assert shop.postgres.slot(shop.flow.slot) is None
    shop.postgres.republish("shop_publication", "version")
    run(engines)
    assert opened(shop)["orders"][-1] == 2


def test_an_interrupted_first_snapshot_is_finished(engines: Engines) -> None:
    """Epoch 0 has not ended: the resnapshot takes no new one, and sweeps to the snapshot that was taken last."""
    shop = engines.shop
    for part in ("complete", "broken"):
        shop.bucket.delete([object_names.epoch_key("shop", 0, part)])
    shop.bucket.delete([object_names.continuity_key("shop")])
    shop.kafka.make(HEARTBEATS)
    shop.postgres.put_slot(shop.flow.slot)
    shop.streaming = True
    shop.beat(snapshot="first")
    shop.postgres.beat_silently()
    shop.beat(snapshot="first")
    said = run(engines)
    assert said[0] == "epoch 0 (it ran before epochs were kept) goes on: its snapshot is not in the lake yet"
    completion = Epochs(shop.bucket, "shop").completion(0)
    assert completion is not None
    assert {spec.lsn for spec in engines.swept} == {completion.snapshot_lsn}
    assert opened(shop)["orders"] == [0, 0]


def test_one_at_a_time(engines: Engines) -> None:
    held = lease.held(engines.shop.bucket, object_names.resnapshot_lease_key("shop"), "resnapshot 7")
    with held, pytest.raises(LeaseHeldError, match="resnapshot 7 writes here"):
        run(engines)


def test_it_waits_for_open_transactions(engines: Engines) -> None:
    """Their records would be landed in the next epoch, and win over its snapshot."""
    shop = engines.shop
    shop.kafka.hold(shop.orders.topic, 0, 1)
    with pytest.raises(ContractError, match=r"topic shop\.sales\.orders has records of a transaction"):
        run(engines)
    assert [found.number for found in [Epochs(shop.bucket, "shop").current()] if found] == [0]
    shop.kafka.hold(shop.orders.topic, 0, None)
    run(engines)
    check_done(engines)


def test_it_waits_for_a_landing(engines: Engines) -> None:
    key = object_names.landing_lease_key("shop", engines.shop.orders.topic)
    with lease.held(engines.shop.bucket, key, "dagster run 1"), pytest.raises(LeaseHeldError, match="dagster run 1"):
        run(engines)
    assert opened(engines.shop)["orders"] == [0]


def test_a_pipeline_that_has_not_begun_is_refused(shop: World) -> None:
    shop.bucket.objects.clear()
    with pytest.raises(ContractError, match="Cannot resnapshot pipeline shop: it was never started"):
        run(Engines(shop))


def test_a_landing_of_the_epoch_before_commits_nothing(engines: Engines) -> None:
    """It had fixed its range before the epoch began."""
    shop = engines.shop
    early = table_progress.landing(shop.orders, shop.kafka, S3Location("shop")).spec
    run(engines)
    with pytest.raises(ContractError, match="epoch 0 of pipeline shop has begun"):
        shop.land_by(early)


def test_completion_is_kept(engines: Engines) -> None:
    run(engines)
    epochs = Epochs(engines.shop.bucket, "shop")
    before = epochs.completion(1)
    epochs.complete(1, Completion(snapshot_lsn=1, completed_at=datetime.now(UTC)))
    assert epochs.completion(1) == before
