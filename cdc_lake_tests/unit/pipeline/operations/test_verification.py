"""Verification with a fake job: the consistent point, the waits for stream and lake, and the job's spec."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from cdc_lake.contract.errors import (
    ContractError,
    SourceUnreadableError,
    TablesNotComparedError,
    UnknownColumnsError,
)
from cdc_lake.contract.source.epochs import Epoch, Epochs
from cdc_lake.contract.table import pending_counts
from cdc_lake.jobs import verify
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.landing import land
from cdc_lake.jobs.verify import VerifyReport, VerifySpec
from cdc_lake.pipeline.operations import verification_steps
from cdc_lake.pipeline.operations.verification import VerifySystems, verify_applied, verify_tables
from cdc_lake.pipeline.operations.verification_steps import lake_state
from cdc_lake_tests.fakes.jobs import FakeSpark
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from resources.postgres.exported_snapshot import Snapshot
from resources.postgres.resource import Postgres
from resources.postgres.table_files import TableFiles

EQUAL = VerifyReport(1, 1, 1, 0, 0, 0, 0, 0, 0, (), {})


@dataclass
class HeldPoint:
    """A consistent point of the fake source. A rewritten table has another file."""

    lsn: int
    snapshot_id: str = "00000003-1"
    snapshot: Snapshot = field(default_factory=lambda: Snapshot(700, 710, frozenset({701})))
    horizon: int = 5
    rewritten: bool = False

    def files(self, _schema: str, _table: str) -> TableFiles:
        """Return the files of a table, as ConsistentPoint does."""
        return TableFiles((2 if self.rewritten else 1,), 40)


@dataclass
class Oracle:
    """The shop with a fake verify job, which records its specs."""

    shop: Shop
    specs: list[VerifySpec] = field(default_factory=list)
    points: list[HeldPoint] = field(default_factory=list)
    rewrites: bool = False
    report: VerifyReport = EQUAL
    cleaned: bool = False
    """Whether another writer deletes the files of all earlier commits while the job runs."""

    @property
    def systems(self) -> VerifySystems:
        """Return the systems that a verification uses."""
        shop = self.shop
        spark = FakeSpark({land.run: shop.land_by, upsert.run: shop.apply_by, verify.run: self._run})
        return VerifySystems(shop.postgres, shop.kafka, shop.connect, shop.store, spark)  # type: ignore[arg-type]  # a fake

    @contextmanager
    def point(self, postgres: Postgres, slot: str) -> Iterator[HeldPoint]:
        """Yield a point, as consistent_point() does."""
        assert slot == self.shop.pipeline.slot
        self.points.append(HeldPoint(postgres.current_lsn()))
        yield self.points[-1]

    def _run(self, spec: VerifySpec) -> VerifyReport:
        self.specs.append(spec)
        self.points[-1].rewritten = self.rewrites
        if self.cleaned:
            folder = f"{self.shop.orders.lake_prefix}.hoodie/"
            self.shop.bucket.write(f"{folder}20990101000000000.commit", b'{"partitionToWriteStats": {}}')
            self.shop.bucket.write(f"{folder}20990101000001000.clean", b"20990101000001000 20990101000000000")
        return self.report


@pytest.fixture
def oracle(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Oracle:
    """A shop with three orders in the lake."""
    for number in (1, 2, 3):
        shop.order(number)
    shop.carry()
    fake_oracle = Oracle(shop)
    monkeypatch.setattr(verification_steps, "consistent_point", fake_oracle.point)
    return fake_oracle


def test_unapplied_records_are_passed_as_later(oracle: Oracle) -> None:
    shop = oracle.shop
    shop.order(4)
    shop.land(shop.orders)
    shop.order(5)
    assert verify_applied(shop.orders, oracle.systems, seconds=1) is EQUAL
    (spec,) = oracle.specs
    assert spec.lake == spec.base == lake_state(shop.bucket, shop.orders)
    assert spec.later is not None
    assert (spec.later.begins, spec.later.ends) == ({0: 3}, {0: 5})


def test_the_job_gets_the_consistent_point(oracle: Oracle) -> None:
    verify_applied(oracle.shop.orders, oracle.systems, seconds=1)
    (spec,), (point,) = oracle.specs, oracle.points
    assert (spec.point.xmax, spec.point.in_progress) == (710, {701})
    assert (spec.point.lsn, spec.point.horizon, spec.point.epoch) == (point.lsn, 5, 0)
    assert (spec.source.snapshot_id, spec.source.pages) == (point.snapshot_id, 40)
    assert (spec.source.schema, spec.source.table) == ("sales", "orders")


def test_a_lake_table_without_commits_has_no_state(oracle: Oracle) -> None:
    shop = oracle.shop
    verify_applied(shop.customers, oracle.systems, seconds=1)
    (spec,) = oracle.specs
    assert spec.lake is None
    assert spec.later is not None
    assert spec.later.begins == {0: 0}


def test_verify_tables_waits_until_the_lake_has_passed_the_point(oracle: Oracle) -> None:
    shop = oracle.shop
    before = lake_state(shop.bucket, shop.orders)
    shop.order(4)
    with pytest.raises(TablesNotComparedError, match="cdc-lake verify shop --apply"):
        list(verify_tables(shop.pipeline, [shop.orders], oracle.systems, seconds=0.6))
    assert not oracle.specs
    lines: list[str] = []
    found = list(verify_tables(shop.pipeline, [shop.orders], oracle.systems, seconds=5, apply=True, show=lines.append))
    assert found == [(shop.orders, EQUAL)]
    (spec,) = oracle.specs
    assert spec.base == before
    assert spec.lake == lake_state(shop.bucket, shop.orders) != before
    assert spec.later is None
    assert any("landing" in each for each in lines)


def test_a_table_whose_topic_is_lost_does_not_prevent_the_comparison_of_the_others(oracle: Oracle) -> None:
    shop = oracle.shop
    shop.kafka.delete_topic(shop.customers.topic)
    found = verify_tables(shop.pipeline, [shop.customers, shop.orders], oracle.systems, seconds=5, apply=True)
    assert next(found) == (shop.orders, EQUAL)
    with pytest.raises(TablesNotComparedError, match="Cannot compare 1 lake table of pipeline shop") as failed:
        next(found)
    assert failed.value.reasons.keys() == {"customers"}
    assert f"topic {shop.customers.topic}: it does not exist yet" in failed.value.reasons["customers"]


def test_verification_waits_until_the_stream_has_passed_the_point(oracle: Oracle) -> None:
    oracle.shop.streaming = False
    with pytest.raises(ContractError, match="did not write the heartbeat"):
        verify_applied(oracle.shop.orders, oracle.systems, seconds=0.3)


def test_a_commit_without_checkpoint_keeps_the_manifest_of_the_previous_one(oracle: Oracle) -> None:
    shop = oracle.shop
    ours = lake_state(shop.bucket, shop.orders)
    assert ours is not None
    shop.bucket.write(f"{shop.orders.lake_prefix}.hoodie/20990101000000000.commit", b'{"partitionToWriteStats": {}}')
    shop.bucket.write(f"{shop.orders.lake_prefix}.hoodie/20990201000000000.commit.requested", b"")
    state = lake_state(shop.bucket, shop.orders)
    assert state is not None
    assert (state.instant, state.manifest) == ("20990101000000000", ours.manifest)


def test_an_open_transaction_fails_the_verification(oracle: Oracle) -> None:
    shop = oracle.shop
    shop.order(4)
    shop.kafka.hold(shop.orders.topic, 0, 3)
    with pytest.raises(ContractError, match=r"records of a transaction that has not ended"):
        verify_applied(shop.orders, oracle.systems, seconds=0.2)
    assert not oracle.specs


def test_a_difference_is_not_reported_if_compared_files_were_cleaned(oracle: Oracle) -> None:
    oracle.report = replace(EQUAL, missing=1)
    assert verify_applied(oracle.shop.orders, oracle.systems, seconds=1) is oracle.report
    oracle.cleaned = True
    with pytest.raises(SourceUnreadableError, match=r"were deleted during the comparison, .* `history` of 1h"):
        verify_applied(oracle.shop.orders, oracle.systems, seconds=1)


def test_a_key_that_stays_pending_is_reported_until_a_run_compares_it(oracle: Oracle) -> None:
    orders = oracle.shop.orders
    hot, other = {"order_id": "1"}, {"order_id": "2"}
    oracle.report = replace(EQUAL, pending=2, pending_keys={"aa": hot, "bb": other})
    for _ in range(pending_counts.MAX_PENDING_RUNS - 1):
        assert verify_applied(orders, oracle.systems, seconds=1).passed
    oracle.report = replace(EQUAL, pending=1, pending_keys={"aa": hot})
    found = verify_applied(orders, oracle.systems, seconds=1)
    assert (found.clean, found.passed, found.never_compared) == (True, False, [hot])
    # `cdc-lake verify` waits for the lake, so that no key is pending.
    oracle.report = EQUAL
    assert list(verify_tables(oracle.shop.pipeline, [orders], oracle.systems, seconds=5, apply=True)) == [
        (orders, EQUAL)
    ]
    oracle.report = replace(EQUAL, pending=1, pending_keys={"aa": hot})
    assert verify_applied(orders, oracle.systems, seconds=1).passed


def test_nothing_is_compared_during_a_resnapshot(oracle: Oracle) -> None:
    began = Epoch(
        number=1, pipeline="shop", reason="lost", began_at=datetime.now(UTC), system_identifier="1", timeline=1,
        slot="s", lsn=1,
    )  # fmt: skip
    Epochs(oracle.shop.bucket, "shop").begin(began)
    with pytest.raises(ContractError, match="a resnapshot is running, or was interrupted"):
        verify_applied(oracle.shop.orders, oracle.systems, seconds=1)
    assert not oracle.specs


def test_a_table_rewritten_during_the_comparison_is_reported(oracle: Oracle) -> None:
    oracle.rewrites = True
    with pytest.raises(SourceUnreadableError, match="truncated or rewritten"):
        verify_applied(oracle.shop.orders, oracle.systems, seconds=1)


def test_a_column_without_captured_schema_is_rejected(oracle: Oracle) -> None:
    shop = oracle.shop
    (*columns, total) = shop.postgres.columns("sales", "orders")
    shop.postgres.has("sales", "orders", columns, ("order_id",))
    with pytest.raises(UnknownColumnsError, match=total.name):
        verify_applied(shop.orders, oracle.systems, seconds=1)
