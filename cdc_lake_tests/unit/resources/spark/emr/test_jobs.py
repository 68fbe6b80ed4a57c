"""Jobs on EMR and on EMR Serverless: reports, errors and cancellation."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dagster._core.errors import DagsterExecutionInterruptedError

from cdc_lake_tests.aws_api.emr.in_memory import LOGS, Served, served
from cdc_lake_tests.aws_api.emr.serverless import APPLICATION
from cdc_lake_tests.aws_api.emr.steps import CLUSTER
from cdc_lake_tests.unit.resources.spark.emr.served_jobs import HeldError, serverless, steps
from resources.aws.aws_resource import AwsRequestFailed
from resources.errors import AccessRefused, JobFailed, ResourceError, Unreachable, WaitTimedOut
from resources.spark.emr.jobs import EmrJobs
from resources.waiting import until


def work(session: object, spec: str) -> str:
    """The job that callers name; the fake EMR runs its own."""
    raise AssertionError((session, spec))


@pytest.fixture
def aws() -> Iterator[Served]:
    """The fake APIs."""
    with served() as found:
        yield found


@dataclass(frozen=True)
class Variant:
    """A variant of EMR: the resource, the state of success, the folder of a run's logs, and its console page."""

    make: Callable[..., EmrJobs]
    done: str
    logs: str
    page: str


VARIANTS = {
    "steps": Variant(steps, "COMPLETED", f"{LOGS}{CLUSTER}/steps/{{id}}/", f"#/clusterDetails/{CLUSTER}"),
    "serverless": Variant(
        serverless, "SUCCESS", f"{LOGS}applications/{APPLICATION}/jobs/{{id}}/SPARK_DRIVER/", "#/serverless"
    ),
}
both_variants = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


def state(aws: Served) -> str:
    """Wait until the only run has ended; return its state."""
    [run] = aws.all_runs()
    ended = until(lambda: run, lambda run: run.ended is not None, seconds=5, what="the run to end", pause_seconds=0.01)
    return ended.state


@both_variants
def test_a_job_returns_its_report(aws: Served, tmp_path: Path, variant: Variant) -> None:
    resource = variant.make(aws, tmp_path)
    assert resource.last_run() is None
    assert resource.run(work, "report") == "REPORT"
    run = resource.last_run()
    assert run is not None
    assert (run.job, run.state, run.logs) == ("work", variant.done, variant.logs.format(id=run.id))
    assert run.log_url.endswith(f"/s3/buckets/lake?region=us-east-1&prefix={run.logs.removeprefix('s3://lake/')}")
    assert run.console_url == f"https://console.aws.amazon.com/emr/home?region=us-east-1{variant.page}"
    [job] = [each.job for each in aws.all_runs()]
    assert job.settings["spark.app.name"] == "cdc-lake"
    assert job.settings["spark.cdc_lake.kafka.sasl.jaas.config"] == "IAMLoginModule required;"
    objects = {key.partition("/")[2]: body for key, body in aws.s3.objects.items()}
    spec = next(body for key, body in objects.items() if key.endswith("spec.json"))
    assert json.loads(spec) == {"do": "report", "password": "arn:secret"}
    assert [key.rpartition("/")[2] for key in objects if key.startswith("spark/jars/")] == ["hudi-1.jar"]


@both_variants
def test_code_is_uploaded_once(aws: Served, tmp_path: Path, variant: Variant) -> None:
    variant.make(aws, tmp_path).run(work, "a")
    before = {key: body for key, body in aws.s3.objects.items() if "/code/" in key or "/jars/" in key}
    resource = variant.make(aws, tmp_path)
    resource.warm()
    assert resource.run(work, "b") == "B"
    after = {key: body for key, body in aws.s3.objects.items() if "/code/" in key or "/jars/" in key}
    assert after == before
    assert len(after) == 3


@both_variants
def test_an_error_of_the_job_is_raised(aws: Served, tmp_path: Path, variant: Variant) -> None:
    resource = variant.make(aws, tmp_path)
    with pytest.raises(HeldError, match="the table is held") as caught:
        resource.run(work, "fail")
    cause, run = caught.value.__cause__, resource.last_run()
    assert isinstance(cause, JobFailed)
    assert run is not None
    assert run.state == "FAILED"
    assert f"{run.id} (work)" in str(cause)
    assert variant.logs.format(id=run.id) in str(cause)


@both_variants
def test_a_killed_job_is_reported_with_its_log(aws: Served, tmp_path: Path, variant: Variant) -> None:
    resource = variant.make(aws, tmp_path)
    with pytest.raises(JobFailed) as caught:
        resource.run(work, "die")
    run, message = resource.last_run(), str(caught.value)
    assert run is not None
    assert f"{run.id} (work)" in message
    assert "ended as FAILED" in message
    assert "OutOfMemoryError: Java heap space" in message
    assert "wrote no report to s3://lake/spark/runs/work-" in message
    assert variant.logs.format(id=run.id) in message
    assert message.endswith(f"{run.log_url} {run.console_url}")


@both_variants
@pytest.mark.parametrize("kind", [DagsterExecutionInterruptedError, KeyboardInterrupt])
def test_an_interrupted_caller_cancels_the_run(
    aws: Served, tmp_path: Path, variant: Variant, kind: type[BaseException]
) -> None:
    def interrupt(*_: object) -> None:
        raise kind

    def signal_caller() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    aws.faults.before_answer |= {"DescribeStep": signal_caller, "GET": signal_caller}
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(kind) as caught:
            variant.make(aws, tmp_path).run(work, "sleep")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert "was requested" in caught.value.__notes__[0]
    assert state(aws) == "CANCELLED"


@both_variants
def test_a_job_that_takes_too_long_is_cancelled(aws: Served, tmp_path: Path, variant: Variant) -> None:
    with pytest.raises(WaitTimedOut, match=r"\(work\) of the EMR .* in us-east-1 to end"):
        variant.make(aws, tmp_path, run_seconds=0.3).run(work, "sleep")
    assert state(aws) == "CANCELLED"


@both_variants
def test_throttled_calls_are_repeated(aws: Served, tmp_path: Path, variant: Variant) -> None:
    aws.faults.refused.update({"AddJobFlowSteps": 2, "DescribeStep": 3, "DescribeCluster": 1, "POST": 2, "GET": 3})
    assert variant.make(aws, tmp_path).run(work, "report") == "REPORT"
    assert state(aws) == "SUCCEEDED"


def test_lasting_throttling_raises_an_error(aws: Served, tmp_path: Path) -> None:
    aws.faults.refused["AddJobFlowSteps"] = 10_000
    with pytest.raises(AwsRequestFailed, match=f"Cannot add a step to the cluster {CLUSTER}:.*Not now"):
        steps(aws, tmp_path, patience_seconds=0.2).run(work, "report")


@both_variants
@pytest.mark.parametrize("code", ["AccessDeniedException", "ExpiredTokenException"])
def test_a_missing_permission_or_an_expired_token_is_reported(
    aws: Served, tmp_path: Path, variant: Variant, code: str
) -> None:
    aws.faults.code = code
    aws.faults.refused.update({"AddJobFlowSteps": 1, "POST": 1})
    with pytest.raises(AccessRefused, match=rf"(cluster {CLUSTER}|application {APPLICATION}):.*{code}"):
        variant.make(aws, tmp_path).run(work, "report")
    assert aws.all_runs() == []


def test_a_run_that_cannot_be_cancelled_is_reported_as_possibly_running(aws: Served, tmp_path: Path) -> None:
    aws.faults.code = "ExpiredTokenException"
    aws.faults.refused.update({"DescribeStep": 1, "CancelSteps": 1})
    with pytest.raises(AccessRefused, match="ExpiredTokenException") as caught:
        steps(aws, tmp_path).run(work, "report")
    (note,) = caught.value.__notes__
    assert note.startswith("Cannot cancel step s-")
    assert "which may still run: " in note
    assert state(aws) == "SUCCEEDED"


def test_a_rejected_cancellation_raises_an_error(aws: Served, tmp_path: Path) -> None:
    """EMR returns 200 in this case too."""
    resource = steps(aws, tmp_path)
    resource.run(work, "report")
    run = resource.last_run()
    assert run is not None
    with pytest.raises(JobFailed, match=rf"Cannot cancel step {run.id} .*: Step is in COMPLETED state"):
        resource.cancel_run(run)


def test_a_step_is_found_if_the_response_was_lost(aws: Served, tmp_path: Path) -> None:
    aws.faults.before_answer["AddJobFlowSteps"] = lambda: time.sleep(0.6)
    assert steps(aws, tmp_path, read_timeout_seconds=0.3).run(work, "report") == "REPORT"
    assert aws.faults.requests.count("AddJobFlowSteps") == 1
    assert state(aws) == "SUCCEEDED"


def test_a_start_with_a_lost_response_starts_one_run(aws: Served, tmp_path: Path) -> None:
    aws.faults.before_answer["POST"] = lambda: time.sleep(0.6)
    assert serverless(aws, tmp_path, read_timeout_seconds=0.3).run(work, "report") == "REPORT"
    assert aws.faults.requests.count("POST") == 2
    assert state(aws) == "SUCCEEDED"


def test_an_unreachable_endpoint_is_reported(aws: Served, tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=f"Cannot describe the cluster {CLUSTER}"):
        steps(aws, tmp_path, endpoint_url="http://127.0.0.1:9", patience_seconds=0.2).run(work, "report")


@pytest.mark.parametrize("unknown", ["j-OTHER", "00other"])
def test_an_unknown_cluster_or_application_is_named(aws: Served, tmp_path: Path, unknown: str) -> None:
    resource = steps(aws, tmp_path, cluster_id=unknown) if unknown[0] == "j" else None
    with pytest.raises(ResourceError, match=unknown):
        (resource or serverless(aws, tmp_path, application_id=unknown)).run(work, "report")
