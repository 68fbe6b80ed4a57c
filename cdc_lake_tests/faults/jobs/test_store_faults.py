"""A store that is busy, silent or cut off, in front of the real one: tried again within a bound, or a clear end.

Each request goes through a wire that breaks it as a rule says. What passes is carried whole; where nothing passes any
more, the run ends in an error that names the store, and neither a manifest nor a commit is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

import pytest
from pyspark.sql import SparkSession

from cdc_lake.contract.errors import ContractError, StoreRefusedError, StoreUnreachableError
from cdc_lake.contract.table import timeline
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.engines import Engines, make_bucket
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.integration.jobs.landing_topic import Topic
from cdc_lake_tests.long_test_sizes import is_full
from cdc_lake_tests.s3_fault_proxy import (
    EXPIRED_TOKEN,
    INTERNAL_ERROR,
    SLOW_DOWN,
    CutOff,
    Fault,
    HalfAnswer,
    Hang,
    LoseAnswer,
    Request,
    Rule,
    Wire,
    faulty_wire,
)
from cdc_lake_tests.trial_counts import Tried

BOUND_SECONDS = 240.0
"""Longer than any client may go on trying."""
NewWire = Callable[..., tuple[Wire, Engines]]
SHORT = {
    "attempts.maximum": "2",
    "retry.limit": "2",
    "retry.interval": "50ms",
    "retry.throttle.limit": "2",
    "retry.throttle.interval": "50ms",
    "connection.timeout": "2000",
}
"""S3A's bounds (jobs/spark.properties), as often as twice and without the pauses: two tests wait for the real ones."""

BUSY, BUSY_FOR_GOOD = "503 to the first try of each", "503 for good"
PASSING = {
    BUSY: lambda request: SLOW_DOWN if request.number == 1 else None,
    "503 to every other request": lambda request: SLOW_DOWN if request.number % 2 else None,
    "500 to the first try of each write": lambda request: INTERNAL_ERROR if _first(request) else None,
    "the first put of each is cut off": lambda request: CutOff() if _first(request) else None,
    "the answer to the first put of each is lost": lambda request: LoseAnswer() if _first(request) else None,
}
READING = {
    "the answer to the first get of each ends in the middle": lambda request: HalfAnswer() if _read(request) else None,
}
"""What a landing does not meet, which only writes."""
EXPIRE = "the credentials expire"
LASTING: dict[str, tuple[Fault, type[ContractError]]] = {
    BUSY_FOR_GOOD: (SLOW_DOWN, StoreRefusedError),
    "500 for good": (INTERNAL_ERROR, StoreRefusedError),
    EXPIRE: (EXPIRED_TOKEN, StoreRefusedError),
    "every put is cut off": (CutOff(), StoreUnreachableError),
}


def _first(request: Request) -> bool:
    return request.method == "PUT" and request.number == 1


def _read(request: Request) -> bool:
    """The first reading of an object; a listing's path ends with the bucket."""
    return request.method == "GET" and request.number == 1 and any(part in request.path for part in ("/raw/", "/lake/"))


@pytest.fixture(scope="module")
def new_wire(engines: Engines) -> Iterator[NewWire]:
    """Makes buckets, each behind a wire of its own; Spark reaches them by these wires too."""
    numbers = count(1)
    ended: list[Callable[[], None]] = []
    hadoop = engines.spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]

    def make(real_bounds: bool = False) -> tuple[Wire, Engines]:
        block = faulty_wire(engines.location.endpoint_url or "")
        wire = block.__enter__()
        ended.append(lambda: block.__exit__(None, None, None))
        bucket = f"store-faults-{next(numbers)}"
        make_bucket(replace(engines.location, bucket=bucket))
        hadoop.set(f"fs.s3a.bucket.{bucket}.endpoint", wire.endpoint)
        if not real_bounds:
            shorten(engines.spark, bucket)
        return wire, replace(engines, location=replace(engines.location, bucket=bucket, endpoint_url=wire.endpoint))

    yield make
    for end in ended:
        end()


def shorten(spark: SparkSession, bucket: str) -> None:
    """Let S3A give up on a bucket soon; not where everything is tried (CDC_LAKE_FULL)."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    for name, value in () if is_full() else SHORT.items():
        hadoop.set(f"fs.s3a.bucket.{bucket}.{name}", value)


@contextmanager
def broken(wire: Wire, rule: Rule) -> Iterator[None]:
    """The wire follows a rule during the block, which has to end within the bound, and meets a fault."""
    before, began = len(wire.met), time.monotonic()
    wire.rule = rule
    try:
        yield
    finally:
        wire.rule = lambda _: None
    assert len(wire.met) > before, "no request met the fault"
    assert time.monotonic() - began < BOUND_SECONDS


def after(writes: int, prefix: str, fault: Fault) -> Rule:
    """The fault for all requests, once so many writes below a prefix have passed."""
    passed = count(1)
    over = False

    def rule(request: Request) -> Fault | None:
        nonlocal over
        if not over and request.writes and prefix in request.path:
            over = next(passed) > writes
        return fault if over else None

    return rule


def fill(table: LakeTable, first: int, keys: int = 40) -> dict[int, int]:
    """Deliver one change of each key; the quantities by key."""
    changed = {key: first + key for key in range(keys)}
    table.deliver([event(key, "c", first + key, qty=qty) for key, qty in changed.items()])
    return changed


def rows(table: LakeTable) -> dict[object, object]:
    """The quantities by key as hudi-rs reads them; a key that is there twice fails."""
    found = [(row["id"], row["qty"]) for row in table.by_hudi_rs()]
    assert len(found) == len(dict(found))
    return dict(found)


@pytest.mark.parametrize("name", PASSING)
def test_a_landing_goes_on(new_wire: NewWire, name: str, tried: Tried) -> None:
    wire, engines = new_wire()
    topic = Topic(engines, f"passing-{engines.location.bucket}", 2)
    try:
        topic.transaction({0: 60, 1: 60})
        with broken(wire, PASSING[name]):
            report = topic.land(topic.spec(records_per_object=20))
        assert (report.manifest, report.records, report.objects) == (1, 120, 6)
        assert sorted(topic.landed()) == sorted(topic.committed)
        tried("requests to the store that were broken", len(wire.met))
    finally:
        topic.close()


@pytest.mark.parametrize("name", LASTING)
def test_a_landing_ends(new_wire: NewWire, name: str, tried: Tried) -> None:
    wire, engines = new_wire()
    fault, kind = LASTING[name]
    topic = Topic(engines, f"lasting-{engines.location.bucket}", 2)
    try:
        topic.transaction({0: 60, 1: 60})
        with broken(wire, after(3, "/raw/", fault)), pytest.raises(kind) as raised:
            topic.land(topic.spec(records_per_object=20))
        assert engines.location.bucket in raised.value.user_message
        assert topic.chain.length() == 0
        assert topic.land(topic.spec(records_per_object=20)).records == 120
        assert sorted(topic.landed()) == sorted(topic.committed)
        tried("runs that a lasting fault of the store ended", 1)
    finally:
        topic.close()


@pytest.mark.parametrize("name", [*(name for name in PASSING if "other" not in name), *READING])
def test_an_upsert_goes_on(new_wire: NewWire, name: str, tried: Tried) -> None:
    wire, engines = new_wire(real_bounds=name == BUSY)
    table = LakeTable(engines, "passing", COLUMNS, KEY)
    expected = fill(table, 100)
    table.upsert()
    expected |= fill(table, 1000, keys=20)
    with broken(wire, {**PASSING, **READING}[name]):
        report = table.upsert()
    assert (report.manifests, report.updates) == (1, 20)
    assert rows(table) == expected
    tried("requests to the store that were broken", len(wire.met))


# The faults begin with the data files, with the commit's own files, and after the commit.
@pytest.mark.parametrize(("name", "writes"), [(BUSY_FOR_GOOD, 1), ("every put is cut off", 4), (EXPIRE, 7)])
def test_an_upsert_ends(new_wire: NewWire, name: str, writes: int, tried: Tried) -> None:
    """All of the batch is in the table or nothing; the next run carries what is missing, once."""
    wire, engines = new_wire(real_bounds=name == BUSY_FOR_GOOD)
    fault, kind = LASTING[name]
    table = LakeTable(engines, "lasting", COLUMNS, KEY)
    expected = fill(table, 100)
    table.upsert()
    before = timeline.last_commit(table.store, table.spec.prefix)
    changed = fill(table, 1000, keys=20)
    with (
        broken(wire, after(writes, "/lake/", fault)),
        pytest.raises(kind, match=rf"{engines.location.bucket}|lake/lasting/orders"),
    ):
        table.upsert(replace(table.spec, lease_seconds=2.0))
    committed = timeline.last_commit(table.store, table.spec.prefix) != before
    assert rows(table) == (expected | changed if committed else expected)
    again = table.upsert(replace(table.spec, lease_wait_seconds=10.0))
    assert again.updates == (0 if committed else 20)
    assert rows(table) == expected | changed
    tried("runs that a lasting fault of the store ended", 1)


def test_a_store_that_is_silent_for_a_while(new_wire: NewWire) -> None:
    """One object of a landing and one file of an upsert: each is tried again after the client's time-out."""
    wire, engines = new_wire()
    table = LakeTable(engines, "silent", COLUMNS, KEY)
    with broken(wire, lambda request: Hang() if _first(request) and "/raw/" in request.path else None):
        expected = fill(table, 100)
    with broken(wire, lambda request: Hang() if _first(request) and request.path.endswith(".parquet") else None):
        table.upsert()
    assert rows(table) == expected
