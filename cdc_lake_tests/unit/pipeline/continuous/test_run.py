"""A pipeline that runs continuously on fakes: what it lands, applies and reports, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from queue import Queue
from sqlite3 import OperationalError

import dagster as dg
import pytest

from cdc_lake.contract.errors import LeaseHeldError, LeaseLostError, StoreUnreachableError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import PreconditionFailedError
from cdc_lake.contract.table import lease, timeline
from cdc_lake.pipeline.assets import lake, raw
from cdc_lake.pipeline.assets.lake import LakeSystems
from cdc_lake.pipeline.continuous import run
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.spark_jobs.job_runs import JobRuns
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from resources.errors import ResourceError

BOUND = 60.0
Event = dg.AssetMaterialization | dg.AssetObservation
Events = dict[str, list[Event]]


def systems(shop: Shop, owner: str = "the test") -> LakeSystems:
    return LakeSystems(shop.source, shop.kafka, shop.store, JobRuns(shop.spark), shop.glue, shop.athena, owner)  # type: ignore[arg-type]


@contextmanager
def running(
    shop: Shop, seconds: float = 600.0, failures: Iterable[Exception] = ()
) -> Iterator[tuple[Queue[Event], threading.Event]]:
    """Run the shop during the block; yield its reports and the event that stops it. First reports raise `failures`."""
    reports: Queue[Event] = Queue()
    left = iter(failures)

    def report(event: Event) -> None:
        for error in left:
            raise error
        reports.put(event)

    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run.run, shop.pipeline, systems(shop), report, stop, seconds)
        try:
            until(lambda: bool(list(shop.bucket.scan("leases/shop/_continuous/"))), running)
            yield reports, stop
        finally:
            stop.set()
        running.result(BOUND)


def until(found: Callable[[], bool], running: Future[None] | None = None) -> None:
    """Wait until `found` returns true, or `running` has failed: then its error is raised."""
    pause = threading.Event()
    for _ in range(int(BOUND / 0.02)):
        if found():
            return
        if running is not None and running.done():
            running.result()
        pause.wait(0.02)
    raise AssertionError("it did not happen")


def events(reports: Queue[Event]) -> Events:
    found: Events = {}
    while not reports.empty():
        event = reports.get()
        found.setdefault("/".join(event.asset_key.path[1:]), []).append(event)
    return found


def applied(shop: Shop) -> int:
    """Return the number of the newest manifest of the orders in the lake."""
    commit = timeline.last_commit(shop.bucket, shop.orders.lake_prefix)
    return 0 if commit is None or commit.checkpoint is None else commit.checkpoint.manifest


def head(shop: Shop) -> int:
    """Return the number of the newest manifest of the orders."""
    found = Chain(shop.bucket, "shop", shop.orders.topic).head()
    return 0 if found is None else found.number


def test_changes_reach_the_lake_and_are_summed_in_one_materialisation(shop: Shop) -> None:
    with running(shop) as (reports, _):
        for number in range(1, 4):
            before = applied(shop)
            shop.order(number)
            until(lambda before=before: applied(shop) > before)  # type: ignore[misc]
        assert reports.empty(), "a report is due once a minute, and at the end"
    found = events(reports)
    [landed], [table] = found["raw/orders_raw"], found["lake/orders_lake"]
    assert isinstance(landed, dg.AssetMaterialization)
    assert landed.metadata["records"].value == table.metadata["events"].value == 3
    assert int(str(table.metadata["commits"].value)) > 1
    assert "commits up to" in str(table.metadata["changes"].value)
    assert table.metadata["dagster/row_count"].value == 3
    assert found["lake/customers_lake"][0].metadata["events"].value == 0, "an empty table is created too"


def test_a_table_without_a_commit_is_not_registered(shop: Shop) -> None:
    """The first apply may come before the first landing; the view would read files that do not exist."""
    assert not lake.apply(shop.orders, systems(shop)).has_changes
    assert shop.glue.get_table(shop.orders.database, shop.orders.name) is None
    raw.land(shop.orders, shop.source, shop.kafka, shop.store, JobRuns(shop.spark), "the test")  # type: ignore[arg-type]
    assert lake.apply(shop.orders, systems(shop)).has_changes
    assert shop.glue.get_table(shop.orders.database, shop.orders.name) is not None


def test_what_is_landed_before_the_end_is_applied(shop: Shop) -> None:
    with running(shop):
        shop.order(1)
        until(lambda: len(shop.raw_events("orders")) == 1)
    assert applied(shop) == head(shop)


def test_what_is_landed_before_an_interrupt_is_applied(shop: Shop) -> None:
    """Dagster ends a run by an exception in its main thread."""
    shop.order(1)

    def interrupt(_: Event) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.run(shop.pipeline, systems(shop), interrupt, threading.Event(), seconds=0.05)
    assert applied(shop) == head(shop) > 0


def test_reports_are_made_while_it_runs(shop: Shop) -> None:
    with running(shop, seconds=0.2) as (reports, _):
        shop.order(1)
        assert reports.get(timeout=BOUND).asset_key.path[1] in {"raw", "lake"}


def test_a_report_that_is_not_possible_is_made_later(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Landing and applying continue while Athena does not answer, and nothing is missing in the sums."""
    asked = threading.Event()
    result = lake.result

    def down(*_: object) -> dg.MaterializeResult[None]:
        asked.set()
        raise ResourceError("Athena does not answer.", "")

    monkeypatch.setattr(lake, "result", down)
    with running(shop, seconds=0.2) as (reports, _):
        shop.order(1)
        assert asked.wait(BOUND)
        shop.order(2)
        until(lambda: len(shop.raw_events("orders")) == 2 and applied(shop) == head(shop))
        monkeypatch.setattr(lake, "result", result)
    [found] = events(reports)["lake/orders_lake"]
    assert found.metadata["events"].value == 2


def test_a_report_that_dagster_cannot_store_is_made_later(shop: Shop) -> None:
    with running(shop, seconds=0.2, failures=[OperationalError("database is locked")] * 5) as (reports, _):
        shop.order(1)
        reports.put(reports.get(timeout=BOUND))
    found = events(reports)["lake/orders_lake"]
    assert sum(int(str(each.metadata["events"].value)) for each in found) == 1


def test_a_table_that_fails_does_not_stop_the_others(shop: Shop) -> None:
    shop.kafka.delete_topic(shop.customers.topic)
    with running(shop) as (reports, _):
        shop.order(1)
        until(lambda: len(shop.raw_events("orders")) == 1 and applied(shop) == head(shop))
    found = events(reports)
    assert {"raw/orders_raw", "lake/orders_lake"} <= set(found)
    [failed] = found["raw/customers_raw"]
    assert isinstance(failed, dg.AssetObservation)
    assert shop.customers.topic in str(failed.metadata["error"].value)


def test_a_pipeline_runs_continuously_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "held", partial(lease.held, wait_seconds=0.1))
    with running(shop), pytest.raises(LeaseHeldError, match="the test holds leases/shop/_continuous"):
        run.run(shop.pipeline, systems(shop, "another"), lambda _: None, threading.Event())


def test_a_run_ends_with_spark(shop: Shop) -> None:
    """Another process starts another JVM; this one would fail for ever."""
    shop.spark.dead = True
    with pytest.raises(ResourceError, match="JVM has ended"):
        run.run(shop.pipeline, systems(shop), lambda _: None, threading.Event())


def test_a_run_ends_when_another_process_has_its_lease(shop: Shop) -> None:
    key = object_names.continuous_lease_key("shop")

    def take() -> bool:
        stored = shop.bucket.get(key)
        if stored is None:
            return False
        held = lease.LeaseRecord.model_validate_json(stored.body)
        taken = held.model_copy(update={"owner": "another", "token": held.token + 1})
        try:
            shop.bucket.replace(key, taken.model_dump_json().encode(), stored.etag)
        except PreconditionFailedError:
            return False  # it was renewed meanwhile
        return True

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run.run, shop.pipeline, systems(shop), lambda _: None, threading.Event(), 0.1)
        until(take, running)
        with pytest.raises(LeaseLostError, match="was taken by another"):
            running.result(BOUND)


def test_a_run_continues_while_the_store_does_not_answer(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = threading.Event()

    def unreachable(_: lease.Lease) -> None:
        if not threading.current_thread().name.startswith("lease "):  # that thread renews too
            refused.set()
        raise StoreUnreachableError("the store does not answer")

    with running(shop, seconds=0.1):
        with monkeypatch.context() as patched:
            patched.setattr(lease.Lease, "renew", unreachable)
            patched.setattr(lease.Lease, "check", unreachable)
            assert refused.wait(BOUND)
        shop.order(1)
        until(lambda: len(shop.raw_events("orders")) == 1 and applied(shop) == head(shop))


def test_applies_that_wait_do_not_delay_landings(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """All permits of the applies are taken by applies that do not end."""
    monkeypatch.setattr(run, "MAX_STEPS", 1)
    end, waiting, apply = threading.Event(), threading.Event(), lake.apply

    def wait(table: PipelineTable, systems: LakeSystems) -> lake.Batch:
        waiting.set()
        assert end.wait(BOUND)
        return apply(table, systems)

    monkeypatch.setattr(lake, "apply", wait)
    with running(shop):
        assert waiting.wait(BOUND)
        shop.order(1)
        shop.customer("ANNE")
        until(lambda: len(shop.raw_events("orders")) == 1 and len(shop.raw_events("customers")) == 1)
        end.set()
