"""A busy, silent or unreachable store: requests are retried within a bound, or the run fails with a clear error.

Each request goes through a proxy that applies a fault rule. With a passing fault, the run completes; with a lasting
one, it fails with an error that names the store, and leaves neither a manifest nor a partial commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

import pytest

from cdc_lake.contract.errors import ContractError, StoreRefusedError, StoreUnreachableError
from cdc_lake.contract.table import timeline
from cdc_lake.jobs.hudi.table_options import TableType
from cdc_lake_tests.faults.jobs.filled_table import fill, rows
from cdc_lake_tests.faults.jobs.s3a_retries import shorten
from cdc_lake_tests.helpers.s3_fault_proxy import (
    EXPIRED_TOKEN,
    INTERNAL_ERROR,
    SLOW_DOWN,
    CutOff,
    Fault,
    FaultProxy,
    HalfAnswer,
    Hang,
    LoseAnswer,
    Request,
    Rule,
    fault_proxy,
)
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY
from cdc_lake_tests.integration.jobs.engines import Engines, make_bucket
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.integration.jobs.landing.landing_topic import Topic
from cdc_lake_tests.pytest_hooks.long_test_sizes import drawn
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TESTS_IN_CI = 4

BOUND_SECONDS = 240.0
"""Longer than any client may retry."""
NewProxy = Callable[..., tuple[FaultProxy, Engines]]

BUSY, BUSY_FOR_GOOD = "503 to the first try of each", "503 to every request"
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
"""Faults that a landing does not meet, since it only writes."""
EXPIRE = "the credentials expire"
LASTING: dict[str, tuple[Fault, type[ContractError]]] = {
    BUSY_FOR_GOOD: (SLOW_DOWN, StoreRefusedError),
    "500 to every request": (INTERNAL_ERROR, StoreRefusedError),
    EXPIRE: (EXPIRED_TOKEN, StoreRefusedError),
    "every put is cut off": (CutOff(), StoreUnreachableError),
}


def _first(request: Request) -> bool:
    return request.method == "PUT" and request.number == 1


def _read(request: Request) -> bool:
    """Return whether a request is the first read of an object; a listing's path ends with the bucket."""
    return request.method == "GET" and request.number == 1 and any(part in request.path for part in ("/raw/", "/lake/"))


_BUCKETS = count(1)
"""Not of the fixture: pytest makes it again for another table type, and Hadoop remembers a bucket's settings."""


@pytest.fixture(scope="module")
def new_proxy(job_engines: Engines) -> Iterator[NewProxy]:
    """Return a factory of buckets, each behind its own proxy, which Spark uses too."""
    ended: list[Callable[[], object]] = []
    hadoop = job_engines.spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]

    def make(real_bounds: bool = False) -> tuple[FaultProxy, Engines]:
        block = fault_proxy(job_engines.location.endpoint_url or "")
        proxy = block.__enter__()
        ended.append(lambda: block.__exit__(None, None, None))
        bucket = f"store-faults-{next(_BUCKETS)}"
        make_bucket(replace(job_engines.location, bucket=bucket))
        hadoop.set(f"fs.s3a.bucket.{bucket}.endpoint", proxy.endpoint)
        if not real_bounds:
            shorten(job_engines.spark, bucket)
        return proxy, replace(
            job_engines, location=replace(job_engines.location, bucket=bucket, endpoint_url=proxy.endpoint)
        )

    yield make
    for end in ended:
        end()


@contextmanager
def broken(proxy: FaultProxy, rule: Rule) -> Iterator[None]:
    """Apply a rule during the block; require that a request meets a fault and that the block ends within the bound."""
    before, began = len(proxy.injected), time.monotonic()
    proxy.rule = rule
    try:
        yield
    finally:
        proxy.rule = lambda _: None
    assert len(proxy.injected) > before, "no request met the fault"
    assert time.monotonic() - began < BOUND_SECONDS


def after(writes: int, prefix: str, fault: Fault) -> Rule:
    """Return a rule that applies a fault to all requests after this number of writes below a prefix."""
    passed = count(1)
    over = False

    def rule(request: Request) -> Fault | None:
        nonlocal over
        if not over and request.writes and prefix in request.path:
            over = next(passed) > writes
        return fault if over else None

    return rule


@pytest.mark.parametrize("name", drawn(PASSING, in_ci=2))
def test_a_landing_completes_despite_a_passing_fault(new_proxy: NewProxy, name: str, count_trials: CountTrials) -> None:
    proxy, engines = new_proxy()
    topic = Topic(engines, f"passing-{engines.location.bucket}", 2)
    try:
        topic.transaction({0: 60, 1: 60})
        with broken(proxy, PASSING[name]):
            report = topic.land(topic.spec(records_per_object=20))
        assert (report.manifest, report.records, report.objects) == (1, 120, 6)
        assert sorted(topic.landed()) == sorted(topic.committed)
        count_trials("requests to the store that were broken", len(proxy.injected))
    finally:
        topic.close()


@pytest.mark.parametrize("name", drawn(LASTING, in_ci=2))
def test_a_landing_fails_with_a_lasting_fault(new_proxy: NewProxy, name: str, count_trials: CountTrials) -> None:
    proxy, engines = new_proxy()
    fault, kind = LASTING[name]
    topic = Topic(engines, f"lasting-{engines.location.bucket}", 2)
    try:
        topic.transaction({0: 60, 1: 60})
        with broken(proxy, after(3, "/raw/", fault)), pytest.raises(kind) as raised:
            topic.land(topic.spec(records_per_object=20))
        assert engines.location.bucket in raised.value.user_message
        assert topic.chain.length() == 0
        assert topic.land(topic.spec(records_per_object=20)).records == 120
        assert sorted(topic.landed()) == sorted(topic.committed)
        count_trials("runs that a lasting fault of the store ended", 1)
    finally:
        topic.close()


@pytest.mark.parametrize("name", drawn([*(name for name in PASSING if "other" not in name), *READING], in_ci=2))
def test_an_upsert_completes_despite_a_passing_fault(
    new_proxy: NewProxy, name: str, table_type: TableType, count_trials: CountTrials
) -> None:
    proxy, engines = new_proxy(real_bounds=name == BUSY and table_type == "cow")
    table = LakeTable(engines, "passing", COLUMNS, KEY, table_type)
    expected = fill(table, 100)
    table.upsert()
    expected |= fill(table, 1000, keys=20)
    with broken(proxy, {**PASSING, **READING}[name]):
        report = table.upsert()
    assert (report.manifests, report.commit.updates) == (1, 20)
    assert rows(table) == expected
    count_trials("requests to the store that were broken", len(proxy.injected))


# The faults begin at the data files, at the commit's own files, and after the commit.
@pytest.mark.parametrize(
    ("name", "writes"), drawn([(BUSY_FOR_GOOD, 1), ("every put is cut off", 4), (EXPIRE, 7)], in_ci=1)
)
def test_an_upsert_fails_with_a_lasting_fault(
    new_proxy: NewProxy, name: str, writes: int, table_type: TableType, count_trials: CountTrials
) -> None:
    """The table has all of the batch or nothing; the next run applies what is missing, once."""
    proxy, engines = new_proxy(real_bounds=name == BUSY_FOR_GOOD and table_type == "cow")
    fault, kind = LASTING[name]
    table = LakeTable(engines, "lasting", COLUMNS, KEY, table_type)
    expected = fill(table, 100)
    table.upsert()
    before = timeline.last_commit(table.store, table.spec.prefix)
    changed = fill(table, 1000, keys=20)
    with (
        broken(proxy, after(writes, "/lake/", fault)),
        pytest.raises(kind, match=rf"{engines.location.bucket}|lake/lasting/orders"),
    ):
        table.upsert(replace(table.spec, lease_seconds=2.0))
    committed = timeline.last_commit(table.store, table.spec.prefix) != before
    assert rows(table) == (expected | changed if committed else expected)
    again = table.upsert(replace(table.spec, lease_wait_seconds=10.0))
    assert (again.commit is None) == committed
    assert committed or again.commit.updates == 20
    assert rows(table) == expected | changed
    count_trials("runs that a lasting fault of the store ended", 1)


@pytest.mark.parametrize(
    ("end", "fault", "kind"),
    drawn([(".parquet", INTERNAL_ERROR, StoreRefusedError), ("commit", CutOff(), StoreUnreachableError)], in_ci=1),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_first_load_whose_data_files_or_commit_cannot_be_written_is_not_committed(
    new_proxy: NewProxy,
    end: str,
    fault: Fault,
    kind: type[ContractError],
    table_type: TableType,
    count_trials: CountTrials,
) -> None:
    """The file that completes a commit ends in `.commit` or `.deltacommit`."""
    proxy, engines = new_proxy()
    table = LakeTable(engines, "first", COLUMNS, KEY, table_type)
    expected = fill(table, 100)
    with (
        broken(proxy, lambda request: fault if request.writes and request.path.endswith(end) else None),
        pytest.raises(kind),
    ):
        table.upsert(replace(table.spec, lease_seconds=2.0))
    assert timeline.last_commit(table.store, table.spec.prefix) is None
    table.upsert(replace(table.spec, lease_wait_seconds=10.0))
    assert rows(table) == expected
    count_trials("runs that a lasting fault of the store ended", 1)


def test_a_request_is_retried_after_the_clients_time_out(new_proxy: NewProxy, table_type: TableType) -> None:
    proxy, engines = new_proxy()
    table = LakeTable(engines, "silent", COLUMNS, KEY, table_type)
    with broken(proxy, lambda request: Hang() if _first(request) and "/raw/" in request.path else None):
        expected = fill(table, 100)
    with broken(proxy, lambda request: Hang() if _first(request) and request.path.endswith(".parquet") else None):
        table.upsert()
    assert rows(table) == expected
