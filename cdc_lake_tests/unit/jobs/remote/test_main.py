"""The program that spark-submit runs: what it reads and leaves behind, with a job in the place of Spark's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cdc_lake.contract.errors import LeaseHeldError, ObjectConflictError
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.jobs.apply.upsert import UpsertReport, UpsertSpec
from cdc_lake.jobs.remote import job_call, main
from cdc_lake_tests.memory_store import MemoryStore

SPEC = UpsertSpec(S3Location("lake"), "shop", "t", "s.t", "orders", ["id"])
REPORT = UpsertReport(None, 0, 0, 0, 0, 0, 0, 0, 0, 1.5, schema_changes=["a column was added"])
TEXTS = job_call.JobTexts()


class Session:
    """A session that can be stopped."""

    stopped = 0

    def stop(self) -> None:
        """See SparkSession."""
        self.stopped += 1


def job(session: Session, spec: UpsertSpec) -> UpsertReport:
    """A job that knows one table."""
    if spec.table == "held":
        raise LeaseHeldError("somebody writes here: wait")
    if spec.table == "broken":
        raise RuntimeError("no such thing")
    assert session.stopped == 0
    return REPORT


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, MemoryStore, Session]]:
    """Runs the program on a spec."""
    monkeypatch.setattr(job_call, "JOBS", {"upsert": job})
    monkeypatch.setattr(job_call, "get_type_hints", lambda _: {"spec": UpsertSpec, "return": UpsertReport})
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")

    def run(text: str | None, store: MemoryStore | None = None) -> tuple[int, MemoryStore, Session]:
        bucket, session = store or MemoryStore(), Session()
        if text is not None:
            bucket.write("runs/1/spec.json", text.encode())
        told = ["--job", "upsert", "--spec", "s3://b/runs/1/spec.json", "--report", "s3://b/runs/1/report.json"]
        code = main.main([*told, "--region", "us-east-1"], lambda _: bucket, lambda: session)  # type: ignore[arg-type,return-value]
        return code, bucket, session

    return run


def request(table: str = "orders") -> str:
    """The text of a spec."""
    return TEXTS.request(job, UpsertSpec(SPEC.location, "shop", "t", "s.t", table, ["id"]), {})


def left(bucket: MemoryStore) -> str:
    """What was written."""
    return bucket.objects["runs/1/report.json"].body.decode()


def test_the_report_is_written(run: Callable[..., Any]) -> None:
    code, bucket, session = run(request())
    assert (code, session.stopped) == (0, 1)
    assert TEXTS.report(job, left(bucket)) == REPORT


def test_an_error_of_the_contract_is_raised_as_itself(run: Callable[..., Any]) -> None:
    code, bucket, session = run(request("held"))
    assert (code, session.stopped) == (1, 1)
    found = TEXTS.error(left(bucket))
    assert type(found) is LeaseHeldError
    assert found.user_message == "somebody writes here: wait"


def test_another_error_is_told_with_its_class(run: Callable[..., Any]) -> None:
    code, bucket, _ = run(request("broken"))
    assert code == 1
    assert str(TEXTS.error(left(bucket))) == "RuntimeError: no such thing"


@pytest.mark.parametrize("text", [None, "{", "[]", "{}"])
def test_a_spec_that_can_t_be_read_is_an_error_before_spark_starts(run: Callable[..., Any], text: str | None) -> None:
    code, bucket, session = run(text)
    assert (code, session.stopped) == (1, 0)
    assert TEXTS.error(left(bucket)) is not None


def test_a_put_that_had_succeeded_is_as_good_and_another_s_report_is_not(run: Callable[..., Any]) -> None:
    store = MemoryStore()
    store.lose_answers(1)
    assert run(request(), store)[0] == 0
    other = MemoryStore()
    other.write("runs/1/report.json", b"another's")
    with pytest.raises(ObjectConflictError, match="from another run"):
        run(request(), other)


def test_a_job_that_has_no_name_can_t_be_asked_for() -> None:
    with pytest.raises(ValueError, match="is no job that can be started by name"):
        TEXTS.request(len, SPEC, {})
