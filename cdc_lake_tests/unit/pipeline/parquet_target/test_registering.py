"""Registrations of a Parquet target: what they write to the catalog, and when the next one is needed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import dagster as dg
import pytest

from cdc_lake.contract.source.epochs import Completion, Epochs
from cdc_lake.contract.table.event_order import Position, Watermark
from cdc_lake.pipeline import lake_commit
from cdc_lake.pipeline.automation.pending_runs import pending_apply
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.parquet_target import registering
from cdc_lake.pipeline.parquet_target.boundary import boundary
from cdc_lake.pipeline.parquet_target.registering import RegisterResult
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.pipeline.parquet_shop import parquet_shop
from cdc_lake_tests.unit.pipeline.parquet_target.recording_athena import RecordingAthena
from resources.athena import Athena


class Target:
    """The shop's orders in a Parquet target, landed as JSON, which needs no Spark."""

    def __init__(self, shop: Shop, folder: Path) -> None:
        self.shop = shop
        self.table: PipelineTable = parquet_shop(folder, "format: json").tables[0]
        self.athena = RecordingAthena(shop.glue)

    def register(self) -> RegisterResult:
        """Register what is landed."""
        where = location(self.shop.resources["store"])
        athena = cast(Athena, self.athena)
        shop = self.shop
        return registering.register(self.table, shop.source, shop.kafka, shop.glue, athena, where, "the test")

    def pending(self) -> Any:  # noqa: ANN401 - a position or a reason
        """Return the next run's position, or why none is needed."""
        return pending_apply(self.table, self.shop.resources["store"], "the test")


@pytest.fixture
def target(shop: Shop, tmp_path: Path) -> Target:
    """Return the target with one landed order."""
    shop.order(1)
    shop.land(shop.orders)
    return Target(shop, tmp_path / "parquet")


def test_the_first_registration_creates_table_partition_and_view(target: Target) -> None:
    done = target.register()
    assert (done.changed, [manifest.number for manifest in done.new]) == (True, [1])
    raw = target.shop.glue.get_table("shop_lake", "orders_raw")
    assert raw is not None
    assert [(key.name, key.type) for key in raw.partition_keys] == [("__epoch", "int"), ("__partition", "int")]
    assert [(column.name, column.type) for column in raw.columns[:4]] == [
        ("order_id", "int"),
        ("customer_id", "string"),
        ("total", "string"),
        ("__op", "string"),
    ]
    assert raw.serde == "org.openx.data.jsonserde.JsonSerDe"
    assert raw.location == "s3://shop/raw/shop/shop.sales.orders"
    assert target.shop.glue._partitions["shop_lake.orders_raw"] == {"__epoch=0/__partition=0"}
    [view] = target.athena.views
    assert view.startswith(
        'CREATE OR REPLACE VIEW "shop_lake"."orders_latest" AS WITH typed_rows AS (SELECT "order_id" AS'
    )
    assert 'TRY_CAST("total" AS DECIMAL(6,2)) AS "total"' in view
    assert 'events AS (SELECT CAST("order_id" AS INTEGER) AS "order_id"' in view
    assert "__schema_version" not in view, "records have no version"
    commit = lake_commit.newest(target.shop.bucket, target.table)
    assert commit is not None
    assert commit.checkpoint is not None
    assert commit.checkpoint.manifest == 1
    assert isinstance(target.pending(), dg.SkipReason)


def test_an_interrupted_registration_is_repeated(target: Target) -> None:
    target.register()
    target.shop.glue.delete_table("shop_lake", "orders_latest")
    assert target.register().changed
    assert not target.register().has_changes
    assert len(target.athena.views) == 2


def test_a_landing_needs_a_registration_which_leaves_the_catalog_unchanged(target: Target) -> None:
    before = target.register().registration
    target.shop.order(2)
    target.shop.land(target.shop.orders)
    assert "manifests-2-2" in target.pending()
    done = target.register()
    assert (done.changed, done.has_changes, len(target.athena.views)) == (False, True, 1)
    assert done.registration is not None
    assert before is not None
    assert done.registration.instant > before.instant


def test_a_complete_snapshot_moves_the_boundary_of_the_view(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    target.register()
    wanted = Position(0, streamed=False, lsn=1).encode()
    monkeypatch.setattr(registering, "boundary", lambda *_: wanted)
    assert target.pending().endswith(f"snapshot-{wanted}")
    assert target.register().changed
    assert f">= '{wanted}'" in target.athena.views[-1]
    assert isinstance(target.pending(), dg.SkipReason)
    monkeypatch.setattr(registering, "boundary", lambda *_: Position(0, streamed=False, lsn=0).encode())
    assert not target.register().has_changes, "the boundary does not move back"


@pytest.mark.parametrize(
    ("complete", "landed", "expected"),
    [
        ({}, 999, (0, 0)),
        ({0: None}, None, (0, 0)),
        ({0: 100}, 999, (0, 100)),
        ({0: 100, 1: 500}, 999, (1, 500)),
        ({0: 100, 1: 500}, 499, (0, 100)),
        ({0: 100, 2: 700}, 999, (2, 700)),
    ],
)
def test_the_boundary_is_the_newest_snapshot_that_is_complete_and_landed(
    monkeypatch: pytest.MonkeyPatch, complete: dict[int, int | None], landed: int | None, expected: tuple[int, int]
) -> None:
    class Current:
        number = 2

    def completion(_epochs: Epochs, number: int) -> Completion | None:
        return Completion(snapshot_lsn=complete[number], completed_at=datetime.now(UTC)) if number in complete else None

    monkeypatch.setattr(Epochs, "current", lambda _epochs: Current)
    monkeypatch.setattr(Epochs, "completion", completion)
    epoch, lsn = expected
    mark = None if landed is None else Watermark(0, landed)
    assert boundary(MemoryStore(), "shop", mark) == Position(epoch, streamed=False, lsn=lsn).encode()
