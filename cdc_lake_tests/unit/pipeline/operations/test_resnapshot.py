"""The steps of a resnapshot on fakes: their order, interruption at each of them, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import (
    ContractError,
    EpochNotLandedError,
    LeaseHeldError,
    ManifestGapError,
    SchemaChangeError,
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
from cdc_lake.jobs.landing import pending_offsets
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake.jobs.maintenance import sweep
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.operations import land_and_apply
from cdc_lake.pipeline.operations.resnapshot import resnapshot
from cdc_lake.pipeline.operations.resnapshot_steps import ResnapshotSystems
from cdc_lake.pipeline.source_health import stream_continuity
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.shop.shop_pipeline import HEARTBEATS

FAILPOINTS = [name for name in failpoints.REGISTRY if name.startswith("resnapshot.")]
TABLES = [("sales", name) for name in ("orders", "customers", "cdc_heartbeat")]


class Engines:
    """Fakes of the jobs and of Debezium, which creates slot and snapshot if the connector has no slot."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.swept: list[sweep.SweepSpec] = []

    def run(self, job: Callable[[Any, Any], Any], spec: Any) -> Any:  # noqa: ANN401 - same signature as the resource
        """Run a job as LocalSpark does."""
        if job is landing.run:
            head = self._head(spec)
            if not pending_offsets.has_work(head, pending_offsets.pending(head, spec)):
                return landing.LandReport(None, 0, 0, 0, 0, 0.0)
            return self.shop.land_by(spec)
        if job is upsert.run:
            if not upsert.new_manifests(self.shop.bucket, spec, timeline.last_commit(self.shop.bucket, spec.prefix)):
                return upsert.UpsertReport(None)
            return self.shop.apply_by(spec)
        assert job is sweep.run
        commit = timeline.last_commit(self.shop.bucket, spec.table.prefix)
        if commit is not None and commit.checkpoint is not None:
            sweep.require_applied(self.shop.bucket, spec, commit.checkpoint)
        self.swept.append(spec)
        return sweep.SweepReport(None, 3, 0.0)

    def systems(self) -> ResnapshotSystems:
        """Return the systems that a resnapshot uses."""
        shop = self.shop
        return ResnapshotSystems(
            postgres=shop.source,
            kafka=shop.kafka,
            connect=shop.connect,
            location=S3Location("shop"),
            run=self.run,
            config={"connector.class": "Debezium", "exactly.once.support": "required"},
            snapshot_seconds=1.0,
            lease_wait_seconds=0.0,
            settle_seconds=0.1,
        )

    def _head(self, spec: LandSpec) -> Any:  # noqa: ANN401 - Manifest | None
        return Chain(self.shop.bucket, spec.pipeline, spec.topic).head()


@pytest.fixture
def fake_engines(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Engines:
    """The shop in epoch 0, with rows in the lake and a lost slot."""
    shop.postgres.ensure_publication("shop_publication", TABLES)
    shop.connect.put(shop.pipeline.connector, {"connector.class": "Debezium", "exactly.once.support": "required"})
    stream_continuity.begin(shop.pipeline, shop.source, shop.connect, shop.bucket)
    shop.order(1)
    shop.carry()
    shop.order(2)
    shop.postgres.write_heartbeat("sales")
    lose_slot(shop)
    shop.steps.done.clear()
    put = shop.connect.put

    def put_and_snapshot(_self: object, name: str, config: dict[str, str]) -> str:
        missing = shop.postgres.slot(shop.pipeline.slot) is None
        outcome = put(name, config)
        if missing:
            shop.connect.store(name, {"lsn": 995})
            shop.streaming = True
            shop.write_heartbeat(snapshot="first")
            shop.order(1, snapshot="true")
        return outcome

    monkeypatch.setattr(type(shop.connect), "put", put_and_snapshot)
    return Engines(shop)


def lose_slot(shop: Shop) -> None:
    """Drop the slot, which ends the stream."""
    shop.postgres.drop_slot(shop.pipeline.slot)
    shop.streaming = False


def run(engines: Engines) -> list[str]:
    """Take a new snapshot; return its lines."""
    return list(resnapshot(engines.shop.pipeline, engines.systems(), "the slot was lost"))


def manifest_epochs(shop: Shop) -> dict[str, list[int]]:
    """Return the epochs of each table's manifests."""
    return {
        table.name: [manifest.epoch for manifest in table_progress.manifests(shop.bucket, table)]
        for table in shop.pipeline.tables
    }


def check_done(engines: Engines) -> None:
    """Assert that epoch 1 is complete, everything is landed and applied, and each table is swept."""
    shop = engines.shop
    epochs = Epochs(shop.bucket, "shop")
    current, completion = epochs.current(), epochs.completion(1)
    assert current is not None
    assert completion is not None
    assert (current.number, current.reason) == (1, "the slot was lost")
    assert completion.swept == {"orders": 3, "customers": 3}
    assert {spec.lsn for spec in engines.swept} == {completion.snapshot_lsn}
    assert manifest_epochs(shop)["customers"] == [0, 1]
    assert manifest_epochs(shop)["orders"] == [0, 0, 1, 1]
    commit = timeline.last_commit(shop.bucket, shop.orders.lake_prefix)
    assert upsert.new_manifests(shop.bucket, shop.orders.upsert_spec(S3Location("shop"), "t"), commit) == []
    assert stream_continuity.find_faults(shop.pipeline, shop.source, shop.kafka, shop.connect, shop.bucket) == ()


def test_all_steps_run_in_order(fake_engines: Engines) -> None:
    lines = run(fake_engines)
    check_done(fake_engines)
    assert fake_engines.shop.steps.done == ["stop cdc-lake-shop", "offsets cdc-lake-shop"]
    assert lines[0] == "connector cdc-lake-shop is stopped"
    assert "orders: 1 remaining records landed" in lines
    assert lines[-1] == "epoch 1 is complete"


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_a_resnapshot_interrupted_at_any_failpoint_can_be_continued(
    fake_engines: Engines, monkeypatch: pytest.MonkeyPatch, failpoint: str
) -> None:
    failpoints._passes.clear()
    monkeypatch.setenv(failpoints.VARIABLE, f"{failpoint}=raise")
    with pytest.raises(failpoints.FailpointReached, match=failpoint):
        run(fake_engines)
    monkeypatch.delenv(failpoints.VARIABLE)
    run(fake_engines)
    check_done(fake_engines)


def test_an_epoch_whose_topic_was_lost_is_not_continued(fake_engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = fake_engines.shop
    monkeypatch.setenv(failpoints.VARIABLE, "resnapshot.after_opening=raise")
    with pytest.raises(failpoints.FailpointReached):
        run(fake_engines)
    monkeypatch.delenv(failpoints.VARIABLE)
    shop.kafka.delete_topic(shop.orders.topic)
    shop.kafka.make(shop.orders.topic)
    run(fake_engines)
    epochs = Epochs(shop.bucket, "shop")
    broken = epochs.broken(1)
    assert broken is not None
    assert "topic shop.sales.orders was deleted and re-created" in broken.faults[0]
    assert epochs.completion(2) is not None


def test_an_epoch_that_does_not_read_an_added_table_is_not_continued(
    fake_engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    failpoints._passes.clear()
    both, shop = fake_engines.shop.pipeline, fake_engines.shop
    tables = [table for table in both.spec.tables if table.name == "orders"]
    shop.pipeline = replace(both, spec=both.spec.model_copy(update={"tables": tables}))
    monkeypatch.setenv(failpoints.VARIABLE, "resnapshot.after_opening=raise")
    with pytest.raises(failpoints.FailpointReached):
        run(fake_engines)
    monkeypatch.delenv(failpoints.VARIABLE)
    shop.pipeline = both
    run(fake_engines)
    epochs = Epochs(shop.bucket, "shop")
    broken = epochs.broken(1)
    assert broken is not None
    assert broken.faults == ("table customers was added after the snapshot of epoch 1 had begun",)
    assert epochs.completion(2) is not None


def test_an_epoch_whose_schema_has_changed_is_not_continued(
    fake_engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = fake_engines.shop

    def change_type(kind: str) -> None:
        columns = [
            replace(each, type_name=kind, resolved_type=kind) if each.name == "customer_id" else each
            for each in shop.postgres.columns("sales", "orders")
        ]
        shop.postgres.change_catalog("sales", "orders", columns=columns)

    change_type("character varying(5)")
    failpoints._passes.clear()
    monkeypatch.setenv(failpoints.VARIABLE, "resnapshot.after_opening=raise")
    with pytest.raises(failpoints.FailpointReached):
        run(fake_engines)
    monkeypatch.delenv(failpoints.VARIABLE)
    change_type("character varying(4)")
    with pytest.raises(SchemaChangeError, match="changed from character varying"):
        run(fake_engines)
    run(fake_engines)
    epochs = Epochs(shop.bucket, "shop")
    assert epochs.broken(1) is not None
    assert epochs.completion(2) is not None


def test_a_chain_without_its_first_manifest_is_not_swept(fake_engines: Engines) -> None:
    """It would look empty: the epoch would be opened as manifest 1, which the upsert (at a later one) never applies,
    and the sweep would delete every row.
    """
    shop = fake_engines.shop
    shop.order(3)
    shop.carry()
    shop.bucket.delete([object_names.manifest_key("shop", shop.orders.topic, 1)])
    with pytest.raises(ManifestGapError, match=r"topic shop\.sales\.orders: manifest 1 is missing"):
        run(fake_engines)
    assert fake_engines.swept == []


def test_a_table_that_has_not_applied_the_epoch_is_not_swept(
    fake_engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = fake_engines.shop
    skipped = upsert.UpsertReport(None)
    with monkeypatch.context() as patch:
        patch.setattr(shop, "apply_by", lambda _spec: skipped)
        with pytest.raises(
            SnapshotNotAppliedError, match=r"epoch 1 does not have: the table has applied manifest 1 of epoch 0"
        ):
            run(fake_engines)
    assert fake_engines.swept == []
    run(fake_engines)
    check_done(fake_engines)


def test_a_chain_that_ends_in_another_epoch_is_not_swept(
    fake_engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifests of the new epoch were removed after it was opened."""
    shop = fake_engines.shop
    monkeypatch.setenv(failpoints.VARIABLE, "resnapshot.after_connector=raise")
    failpoints._passes.clear()
    with pytest.raises(failpoints.FailpointReached):
        run(fake_engines)
    chain = Chain(shop.bucket, "shop", shop.orders.topic)
    with monkeypatch.context() as patch:
        patch.setattr(land_and_apply, "land_all", lambda *_: 0)
        patch.setattr("cdc_lake.pipeline.operations.resnapshot_steps.open_epoch", lambda *_: False)
        for number in range(chain.length(), 0, -1):
            if chain.read(number).epoch == 1:
                shop.bucket.delete([chain.key(number)])
        with pytest.raises(
            SnapshotNotAppliedError, match=r"manifest chain of topic shop\.sales\.orders ends in epoch 0"
        ):
            run(fake_engines)
    assert fake_engines.swept == []


@pytest.mark.parametrize(
    ("manifest", "attempt", "found"),
    [
        (4, None, None),
        (5, None, None),
        (0, None, "has not applied a manifest"),
        (2, None, "has applied manifest 2 of epoch 0"),
        (3, None, "has applied manifest 3, and the snapshot ends in manifest 4"),
        (4, "another", "has applied a manifest 4 that is no longer in the chain"),
    ],
)
def test_a_sweep_requires_that_the_snapshot_is_applied(
    fake_engines: Engines, manifest: int, attempt: str | None, found: str | None
) -> None:
    shop = fake_engines.shop
    run(fake_engines)
    shop.order(5)
    shop.land(shop.orders)
    assert manifest_epochs(shop)["orders"] == [0, 0, 1, 1, 1]
    spec = sweep.SweepSpec(shop.orders.upsert_spec(S3Location("shop"), "t"), 1, 4, 1, 1)
    applied = timeline.Checkpoint(topic="t", topic_id="x", manifest=manifest, attempt=attempt, schema_version=1)
    if found is None:
        sweep.require_applied(shop.bucket, spec, applied)
        return
    with pytest.raises(SnapshotNotAppliedError, match=f"^Cannot delete the rows of table orders .* the table {found}"):
        sweep.require_applied(shop.bucket, spec, applied)


def test_a_resnapshot_suspended_across_a_reset_opens_no_epoch_in_the_next_chain(
    fake_engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = fake_engines.shop
    monkeypatch.setattr(failpoints, "reached", lambda name: _renew(shop) if name == "resnapshot.after_epoch" else None)
    with pytest.raises(EpochNotLandedError):
        run(fake_engines)
    assert Chain(shop.bucket, "shop", shop.orders.topic).head() is None


def _renew(shop: Shop) -> None:
    chain_id.renew(shop.bucket, "shop")


def test_each_resnapshot_begins_a_new_epoch(fake_engines: Engines) -> None:
    run(fake_engines)
    lose_slot(fake_engines.shop)
    run(fake_engines)
    assert manifest_epochs(fake_engines.shop)["orders"] == [0, 0, 1, 1, 2, 2]


def test_expired_records_are_skipped_and_reported(fake_engines: Engines) -> None:
    shop = fake_engines.shop
    shop.kafka._topics[shop.orders.topic].begins[0] = 2
    lines = run(fake_engines)
    assert any(
        "Cannot land the remaining records" in line and "expired before they were landed" in line for line in lines
    )
    assert manifest_epochs(shop)["orders"] == [0, 1, 1]
    [opening] = [
        manifest for manifest in table_progress.manifests(shop.bucket, shop.orders) if manifest.opens is not None
    ]
    assert "expired before they were landed" in (opening.opens or "")


def test_an_error_while_landing_the_rest_is_reported_and_changes_nothing(
    fake_engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = fake_engines.shop

    def reject(_spec: object) -> None:
        raise TooManyDeadLettersError("topic t: 5 of 9 records are dead letters.")

    with monkeypatch.context() as patch:
        patch.setattr(shop, "land_by", reject)
        with pytest.raises(TooManyDeadLettersError) as caught:
            run(fake_engines)
    assert caught.value.user_message == (
        "topic t: 5 of 9 records are dead letters. Connector cdc-lake-shop is stopped, and nothing else was changed. "
        "Fix the cause and run `cdc-lake resnapshot shop` again, or materialise shop/topic to start the connector."
    )
    assert manifest_epochs(shop)["orders"] == [0]
    assert "offsets cdc-lake-shop" not in shop.steps.done
    run(fake_engines)
    check_done(fake_engines)


def test_a_recreated_topic_is_accepted(fake_engines: Engines) -> None:
    shop = fake_engines.shop
    shop.kafka.make(shop.orders.topic)
    run(fake_engines)
    assert manifest_epochs(shop)["orders"] == [0, 1, 1]
    objects = [item.key for manifest in table_progress.manifests(shop.bucket, shop.orders) for item in manifest.objects]
    assert len(set(objects)) == len(objects) == 2


def test_a_deleted_topic_is_recreated(fake_engines: Engines) -> None:
    shop = fake_engines.shop
    for topic in (shop.orders.topic, HEARTBEATS):
        shop.kafka.delete_topic(topic)
    run(fake_engines)
    assert manifest_epochs(shop)["orders"] == [0, 1, 1]


def test_a_dropped_publication_is_recreated(fake_engines: Engines) -> None:
    shop = fake_engines.shop
    shop.postgres.drop_publication("shop_publication")
    assert "publication shop_publication created" in run(fake_engines)
    check_done(fake_engines)


def test_a_publication_without_deletes_is_rejected_before_the_connector_starts(fake_engines: Engines) -> None:
    shop = fake_engines.shop
    shop.postgres.republish("shop_publication", "version", unpublished="delete")
    with pytest.raises(SourceBrokenError, match="does not publish every delete"):
        run(fake_engines)
    assert shop.postgres.slot(shop.pipeline.slot) is None
    shop.postgres.republish("shop_publication", "version")
    run(fake_engines)
    assert manifest_epochs(shop)["orders"][-1] == 2


def test_an_interrupted_first_snapshot_is_completed(fake_engines: Engines) -> None:
    """Epoch 0 is incomplete: the resnapshot begins no new epoch and sweeps to the newest snapshot."""
    shop = fake_engines.shop
    for part in ("complete", "broken"):
        shop.bucket.delete([object_names.epoch_key("shop", 0, part)])
    shop.bucket.delete([object_names.stream_progress_key("shop")])
    shop.kafka.make(HEARTBEATS)
    shop.postgres.put_slot(shop.pipeline.slot)
    shop.streaming = True
    shop.write_heartbeat(snapshot="first")
    shop.postgres.advance_wal()
    shop.write_heartbeat(snapshot="first")
    lines = run(fake_engines)
    assert lines[0] == "continuing epoch 0 (it ran before epochs were stored): its snapshot is not in the lake yet"
    completion = Epochs(shop.bucket, "shop").completion(0)
    assert completion is not None
    assert {spec.lsn for spec in fake_engines.swept} == {completion.snapshot_lsn}
    assert manifest_epochs(shop)["orders"] == [0, 0]


def test_a_second_resnapshot_at_the_same_time_is_refused(fake_engines: Engines) -> None:
    held = lease.held(fake_engines.shop.bucket, object_names.resnapshot_lease_key("shop"), "resnapshot 7")
    with held, pytest.raises(LeaseHeldError, match="resnapshot 7 holds"):
        run(fake_engines)


def test_an_open_transaction_blocks_the_new_epoch(fake_engines: Engines) -> None:
    """Its records would be landed in the next epoch and override the rows of its snapshot."""
    shop = fake_engines.shop
    shop.kafka.hold(shop.orders.topic, 0, 1)
    with pytest.raises(ContractError, match=r"Cannot read topic shop\.sales\.orders to its end"):
        run(fake_engines)
    assert [found.number for found in [Epochs(shop.bucket, "shop").current()] if found] == [0]
    shop.kafka.hold(shop.orders.topic, 0, None)
    run(fake_engines)
    check_done(fake_engines)


def test_the_lease_of_a_landing_blocks_a_resnapshot(fake_engines: Engines) -> None:
    key = object_names.landing_lease_key("shop", fake_engines.shop.orders.topic)
    with (
        lease.held(fake_engines.shop.bucket, key, "dagster run 1"),
        pytest.raises(LeaseHeldError, match="dagster run 1"),
    ):
        run(fake_engines)
    assert manifest_epochs(fake_engines.shop)["orders"] == [0]


def test_a_pipeline_that_was_never_started_is_rejected(shop: Shop) -> None:
    shop.bucket.objects.clear()
    with pytest.raises(ContractError, match="Cannot resnapshot pipeline shop: it was never started"):
        run(Engines(shop))


def test_a_landing_planned_in_the_previous_epoch_is_refused(fake_engines: Engines) -> None:
    """It fixed its offset range before the new epoch began."""
    shop = fake_engines.shop
    early = table_progress.landing_input(shop.orders, shop.kafka, S3Location("shop")).spec
    run(fake_engines)
    with pytest.raises(ContractError, match="epoch 0 of pipeline shop has begun"):
        shop.land_by(early)


def test_the_completion_of_an_epoch_is_not_overwritten(fake_engines: Engines) -> None:
    run(fake_engines)
    epochs = Epochs(fake_engines.shop.bucket, "shop")
    before = epochs.completion(1)
    epochs.complete(1, Completion(snapshot_lsn=1, completed_at=datetime.now(UTC)))
    assert epochs.completion(1) == before
