"""The program that spark-submit runs: its spec and its report, with a fake job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cdc_lake.contract.errors import LeaseHeldError, ObjectConflictError
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.jobs.apply.upsert import UpsertReport
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.remote import job_call, main
from cdc_lake_tests.helpers.memory_store import MemoryStore

SPEC = UpsertSpec(S3Location("lake"), "shop", "t", "s.t", "orders", ["id"])
REPORT = UpsertReport(None, seconds=1.5, schema_changes=["a column was added"])
TEXTS = job_call.JobTexts()


class Session:
    """A session that can be stopped."""

    stopped = 0

    def stop(self) -> None:
        """Count the calls."""
        self.stopped += 1


def job(session: Session, spec: UpsertSpec) -> UpsertReport:
    """Fail for the tables `held` and `broken`; return REPORT for others."""
    if spec.table == "held":
        raise LeaseHeldError("somebody writes here: wait")
    if spec.table == "broken":
        raise RuntimeError("no such thing")
    assert session.stopped == 0
    return REPORT


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, MemoryStore, Session]]:
    """Run the program on a spec."""
    monkeypatch.setattr(job_call, "JOBS", {"upsert": job})
    monkeypatch.setattr(job_call, "get_type_hints", lambda _: {"spec": UpsertSpec, "return": UpsertReport})
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")

    def run(text: str | None, store: MemoryStore | None = None) -> tuple[int, MemoryStore, Session]:
        bucket, session = store or MemoryStore(), Session()
        if text is not None:
            bucket.write("runs/1/spec.json", text.encode())
        args = ["job", "--name", "upsert", "--spec", "s3://b/runs/1/spec.json", "--report", "s3://b/runs/1/report.json"]
        code = main.main(["--region", "us-east-1", *args], lambda _: bucket, lambda: session)  # type: ignore[arg-type,return-value]
        return code, bucket, session

    return run


def request(table: str = "orders") -> str:
    """Return the text of a spec."""
    return TEXTS.request(job, UpsertSpec(SPEC.location, "shop", "t", "s.t", table, ["id"]), {})


def report_text(bucket: MemoryStore) -> str:
    """Return the text of the report."""
    return bucket.objects["runs/1/report.json"].body.decode()


def test_a_successful_run_writes_its_report(run: Callable[..., Any]) -> None:
    code, bucket, session = run(request())
    assert (code, session.stopped) == (0, 1)
    assert TEXTS.report(job, report_text(bucket)) == REPORT


def test_a_contract_error_is_raised_with_its_class(run: Callable[..., Any]) -> None:
    code, bucket, session = run(request("held"))
    assert (code, session.stopped) == (1, 1)
    found = TEXTS.error(report_text(bucket))
    assert type(found) is LeaseHeldError
    assert found.user_message == "somebody writes here: wait"


def test_another_error_is_reported_with_its_class_name(run: Callable[..., Any]) -> None:
    code, bucket, _ = run(request("broken"))
    assert code == 1
    assert str(TEXTS.error(report_text(bucket))) == "RuntimeError: no such thing"


@pytest.mark.parametrize("text", [None, "{", "[]", "{}"])
def test_an_unreadable_spec_fails_before_spark_starts(run: Callable[..., Any], text: str | None) -> None:
    code, bucket, session = run(text)
    assert (code, session.stopped) == (1, 0)
    assert TEXTS.error(report_text(bucket)) is not None


def test_a_lost_response_succeeds_but_a_report_of_another_run_fails(run: Callable[..., Any]) -> None:
    store = MemoryStore()
    store.lose_answers(1)
    assert run(request(), store)[0] == 0
    other = MemoryStore()
    other.write("runs/1/report.json", b"another's")
    with pytest.raises(ObjectConflictError, match="from another run"):
        run(request(), other)


def test_an_unknown_job_is_rejected() -> None:
    with pytest.raises(ValueError, match="is not a job that can be started by name"):
        TEXTS.request(len, SPEC, {})  # type: ignore[arg-type]  # deliberately no job
