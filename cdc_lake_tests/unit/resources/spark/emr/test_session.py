"""Jobs in a session on EMR: reports, errors, parallel jobs, the end of the session and the start of another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from cdc_lake.contract.errors import LeaseHeldError, ObjectConflictError
from cdc_lake.jobs.remote import job_call, session
from cdc_lake.jobs.remote.session import RequestObjects
from cdc_lake_tests.aws_api.emr.in_memory import BUCKET, Served, served
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.resources.spark.emr.served_jobs import serverless, steps
from resources.errors import JobFailed
from resources.spark.emr.jobs import EmrJobs
from resources.spark.emr.session import EmrSession
from resources.waiting import until

BOUND = 30.0
_released: dict[str, threading.Event] = {}


@dataclass(frozen=True)
class Spec:
    """The name of a table, which says what the job does."""

    table: str


@dataclass(frozen=True)
class Report:
    """The table in capital letters."""

    table: str


def job(_session: object, spec: Spec) -> Report:
    """Fail for the table `held`; wait for a table that the test holds back."""
    if spec.table == "held":
        raise LeaseHeldError("another writer: wait")
    if spec.table in _released:
        assert _released[spec.table].wait(BOUND)
    return Report(spec.table.upper())


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """The fake APIs, whose session runs job()."""
    monkeypatch.setattr(job_call, "JOBS", {"upsert": job})
    monkeypatch.setattr(job_call, "get_type_hints", lambda _: {"spec": Spec, "return": Report})
    with served() as found:
        yield found


Make = Callable[..., EmrJobs]
both = pytest.mark.parametrize("make", [steps, serverless])


def emr(aws: Served, make: Make, folder: Path) -> EmrJobs:
    return make(aws, folder, texts=job_call.JobTexts(), poll_seconds=0.1)


@both
def test_all_jobs_run_in_one_application_until_it_is_closed(aws: Served, make: Make, tmp_path: Path) -> None:
    spark = EmrSession(emr(aws, make, tmp_path))
    assert [spark.run(job, Spec(name)).table for name in ("orders", "lines")] == ["ORDERS", "LINES"]
    with pytest.raises(LeaseHeldError, match="another writer"):
        spark.run(job, Spec("held"))
    [run] = aws.all_runs()
    assert run.state == "RUNNING"
    spark.stop()
    until(lambda: run.state, lambda state: state == "SUCCEEDED", seconds=BOUND, what="the session to end")


def test_jobs_of_several_threads_run_at_the_same_time(
    aws: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_released, "slow", threading.Event())
    spark = EmrSession(emr(aws, serverless, tmp_path))
    with ThreadPoolExecutor() as threads:
        slow = threads.submit(spark.run, job, Spec("slow"))
        assert spark.run(job, Spec("fast")).table == "FAST"
        assert not slow.done()
        _released["slow"].set()
        assert slow.result(BOUND).table == "SLOW"
    spark.stop()
    assert len(aws.all_runs()) == 1


def test_a_session_that_closed_itself_is_replaced(aws: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.serve, "__defaults__", (0.1,))  # the idle time
    spark = EmrSession(emr(aws, serverless, tmp_path))
    assert spark.run(job, Spec("a")).table == "A"
    [first] = aws.all_runs()
    until(lambda: first.state, lambda state: state == "SUCCEEDED", seconds=BOUND, what="the session to end")
    assert spark.run(job, Spec("b")).table == "B"
    assert len(aws.all_runs()) == 2


@both
def test_an_application_that_fails_fails_its_jobs_and_the_next_job_starts_another(
    aws: Served, make: Make, tmp_path: Path
) -> None:
    spark = EmrSession(emr(aws, make, tmp_path))

    def broken(*_: object) -> None:
        raise RuntimeError("the driver ran out of memory")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cdc_lake_tests.aws_api.emr.in_memory.serve", broken)
        with pytest.raises(JobFailed, match="ended as FAILED before it reported request 1"):
            spark.run(job, Spec("a"))
    assert spark.run(job, Spec("a")).table == "A"
    spark.stop()


def test_a_repeated_start_runs_nothing() -> None:
    objects = RequestObjects(MemoryStore(), "runs/session-1/")
    objects.start()
    with pytest.raises(ObjectConflictError, match="it was started before"):
        objects.start()


def test_a_session_ends_after_its_requests(aws: Served, tmp_path: Path) -> None:
    spark = EmrSession(emr(aws, serverless, tmp_path))
    assert spark.run(job, Spec("a")).table == "A"
    [run] = aws.all_runs()
    run.cancelled.set()  # as SIGTERM
    until(lambda: run.state, lambda state: state != "RUNNING", seconds=BOUND, what="the session to end")
    assert any(name.startswith(f"{BUCKET}/") and name.endswith("requests/2.json") for name in aws.s3.puts)
