"""EMR's and EMR Serverless' local APIs with a program in the place of spark-submit, asked by boto3."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdc_lake_tests.fakes.emr import BUCKET, LOGS, Served, served
from infra.local.aws_endpoint import child, emr
from infra.local.aws_endpoint.emr import CLUSTER
from infra.local.aws_endpoint.emr_serverless import APPLICATION
from infra.local.aws_endpoint.spark_runs import RESTARTED, Run, SparkRuns
from infra.local.aws_endpoint.spark_submit import CannotStartError, Wanted
from resources.waiting import until

ENTRY = f"s3://{BUCKET}/main.py"
SUBMIT = ["spark-submit", "--deploy-mode", "client"]
ROLE = "arn:aws:iam::123456789012:role/jobs"
SLEEP = "import time\nprint('began', flush=True)\ntime.sleep(60)\n"


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Served]:
    """The APIs."""
    with served(tmp_path) as found:
        yield found


def eventually(look: Callable[[], Any], done: Callable[[Any], bool]) -> Any:  # noqa: ANN401 - what look() gives
    """What is seen when it is done; fails after ten seconds."""
    return until(look, done, seconds=10, what="what is looked for", pause_seconds=0.01)


def add(aws: Served, program: str, *options: str, name: str = "step") -> str:
    """Add a step that runs this program; its id."""
    aws.s3.objects[f"{BUCKET}/main.py"] = program.encode()
    jar = {"Jar": "command-runner.jar", "Args": [*SUBMIT, *options, ENTRY, "--job", "x"]}
    step = {"Name": name, "ActionOnFailure": "CONTINUE", "HadoopJarStep": jar}
    return str(aws.client("emr").add_job_flow_steps(JobFlowId=CLUSTER, Steps=[step])["StepIds"][0])


def step(aws: Served, step_id: str, *states: str) -> dict[str, Any]:
    """A step once it is in one of the states."""
    client = aws.client("emr")

    def look() -> dict[str, Any]:
        return dict(client.describe_step(ClusterId=CLUSTER, StepId=step_id)["Step"])

    return dict(eventually(look, lambda found: found["Status"]["State"] in states))


def start(aws: Served, program: str, token: str = "token", **submit: str) -> str:
    """Start a job run of this program; its id."""
    aws.s3.objects[f"{BUCKET}/main.py"] = program.encode()
    made = aws.client("emr-serverless").start_job_run(
        applicationId=APPLICATION,
        clientToken=token,
        executionRoleArn=ROLE,
        jobDriver={"sparkSubmit": {"entryPoint": ENTRY, **submit}},
        configurationOverrides={"monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": LOGS}}},
        name="run",
    )
    return str(made["jobRunId"])


def job_run(aws: Served, run_id: str, *states: str) -> dict[str, Any]:
    """A job run once it is in one of the states."""
    client = aws.client("emr-serverless")

    def look() -> dict[str, Any]:
        return dict(client.get_job_run(applicationId=APPLICATION, jobRunId=run_id)["jobRun"])

    return dict(eventually(look, lambda found: found["state"] in states))


def output(aws: Served, run_id: str) -> str:
    """What a run has printed so far."""
    found = [each.folder(run_id) / "stdout" for each in aws.runs.values() if each.get(run_id)]
    return found[0].read_text() if found[0].exists() else ""


def test_a_step_is_told_as_it_was_asked_for(aws: Served) -> None:
    found = step(aws, add(aws, "print('done')"), "COMPLETED", "FAILED")
    assert found["Name"] == "step"
    assert found["Status"]["State"] == "COMPLETED"
    assert found["Config"]["Args"] == [*SUBMIT, ENTRY, "--job", "x"]
    times = found["Status"]["Timeline"]
    assert times["CreationDateTime"] <= times["StartDateTime"] <= times["EndDateTime"]
    cluster = aws.client("emr").describe_cluster(ClusterId=CLUSTER)["Cluster"]
    assert (cluster["LogUri"], cluster["Status"]["State"]) == (LOGS, "WAITING")


def test_the_request_does_not_say_where_a_run_takes_place(aws: Served) -> None:
    own = ["spark.master=yarn", "spark.driver.memory=8g", "spark.pyspark.python=/opt/python"]
    program = "import os, json\nprint('environ', json.dumps(dict(os.environ)))"
    options = [part for value in (*own, "spark.app.name=a b=c") for part in ("--conf", value)]
    run_id = add(aws, program, *options)
    step(aws, run_id, "COMPLETED")
    settings = json.loads(output(aws, run_id).partition("settings ")[2].partition("\n")[0])
    assert settings["spark.master"] == "local[2]"
    assert settings["spark.hadoop.fs.s3a.endpoint"] == aws.s3.url
    assert settings["spark.app.name"] == "a b=c"
    assert settings["spark.driver.memory"] == "1g"
    assert "spark.pyspark.python" not in settings
    assert "S3SECRET" not in json.dumps(settings)
    environ = json.loads(output(aws, run_id).partition("environ ")[2])
    assert (environ["AWS_SECRET_ACCESS_KEY"], environ["AWS_ENDPOINT_URL_S3"]) == ("S3SECRET", aws.s3.url)
    assert environ["SPARK_DIST_CLASSPATH"].endswith("local-jars/hudi.jar")
    assert "PYTHONPATH" not in environ


def test_a_step_that_fails_says_why_and_where_its_log_is(aws: Served) -> None:
    run_id = add(aws, "raise SystemExit('no such table')")
    status = step(aws, run_id, "FAILED")["Status"]
    failure = status["FailureDetails"]
    assert failure["Message"] == "spark-submit ended with 1: no such table"
    assert failure["LogFile"] == f"{LOGS}{CLUSTER}/steps/{run_id}/stderr.gz"
    assert failure["LogFile"].removeprefix("s3://") in aws.s3.objects


@pytest.mark.parametrize("option", ["--jars", "--py-files"])
def test_files_that_are_not_there_fail_it(aws: Served, option: str) -> None:
    found = step(aws, add(aws, "print()", option, f"s3://{BUCKET}/none.jar"), "FAILED")
    assert f"s3://{BUCKET}/none.jar can't be read" in found["Status"]["FailureDetails"]["Message"]


def test_steps_run_one_after_the_other_and_are_cancelled(aws: Served) -> None:
    first, second = add(aws, SLEEP, name="first"), add(aws, SLEEP, name="second")
    eventually(lambda: output(aws, first), lambda text: "began" in text)
    assert step(aws, second, "PENDING", "RUNNING")["Status"]["State"] == "PENDING"
    cancel = aws.client("emr").cancel_steps
    option = "TERMINATE_PROCESS"
    told = cancel(ClusterId=CLUSTER, StepIds=[second, first], StepCancellationOption=option)["CancelStepsInfoList"]
    assert [(each["StepId"], each["Status"]) for each in told] == [(second, "SUBMITTED"), (first, "SUBMITTED")]
    assert step(aws, first, "CANCELLED")["Status"]["StateChangeReason"]["Message"] == "It was cancelled."
    assert "before it began" in step(aws, second, "CANCELLED")["Status"]["StateChangeReason"]["Message"]
    again = cancel(ClusterId=CLUSTER, StepIds=[first])["CancelStepsInfoList"]
    assert (again[0]["Status"], "CANCELLED" in again[0]["Reason"]) == ("FAILED", True)
    listed = aws.client("emr").list_steps(ClusterId=CLUSTER, StepStates=["CANCELLED"])["Steps"]
    assert [each["Name"] for each in listed] == ["second", "first"]


def test_steps_are_listed_by_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emr, "_PAGE", 3)

    def refused(wanted: Wanted, folder: Path) -> tuple[list[str], dict[str, str]]:
        raise CannotStartError(f"{wanted.entry} {folder}")

    with served(tmp_path, refused) as aws:
        ids = [add(aws, "") for _ in range(5)]
        step(aws, ids[-1], "FAILED")
        pages = aws.client("emr").get_paginator("list_steps").paginate(ClusterId=CLUSTER)
        assert [[each["Id"] for each in page["Steps"]] for page in pages] == [ids[:1:-1], ids[1::-1]]
        chosen = aws.client("emr").list_steps(ClusterId=CLUSTER, StepIds=ids[3:5])["Steps"]
        assert [each["Id"] for each in chosen] == [ids[4], ids[3]]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ActionOnFailure": "TERMINATE_CLUSTER"}, "takes ActionOnFailure CONTINUE only"),
        ({"HadoopJarStep": {"Jar": "s3://lake/own.jar"}}, "steps of command-runner.jar with spark-submit only"),
        ({"Args": ["hive-script", "x"]}, "with spark-submit only"),
        ({"Args": ["spark-submit", "--deploy-mode", "cluster", ENTRY]}, "does not take --deploy-mode cluster"),
        ({"Args": ["spark-submit", "--class", "Main", ENTRY]}, "does not take --class Main"),
        ({"Args": ["spark-submit", "--conf", "hive.x=1", ENTRY]}, "does not take --conf hive.x=1"),
        ({"Args": ["spark-submit", "--conf"]}, "does not take --conf:"),
        ({"Args": ["spark-submit", "/home/main.py"]}, "takes files from S3 only"),
        ({"Args": ["spark-submit"]}, "no program"),
        ({"Args": ["spark-submit", "--jars", "s3a://lake/x.jar", ENTRY]}, "takes files from S3 only"),
    ],
)
def test_other_steps_are_refused(aws: Served, changes: dict[str, Any], said: str) -> None:
    args = changes.pop("Args", [*SUBMIT, ENTRY])
    asked = {"Name": "x", "ActionOnFailure": "CONTINUE"}
    asked |= {"HadoopJarStep": {"Jar": "command-runner.jar", "Args": args}, **changes}
    with pytest.raises(ClientError, match=said) as caught:
        aws.client("emr").add_job_flow_steps(JobFlowId=CLUSTER, Steps=[asked])
    assert caught.value.response["Error"]["Code"] == "InvalidRequestException"
    assert aws.runs["emr"].newest_first() == []


def test_clusters_and_what_is_not_there(aws: Served) -> None:
    steps, serverless = aws.client("emr"), aws.client("emr-serverless")
    with pytest.raises(ClientError, match="emr:RunJobFlow is not offered"):
        steps.run_job_flow(Name="x", Instances={})
    with pytest.raises(ClientError, match="Cluster id 'j-1' is not valid"):
        steps.describe_cluster(ClusterId="j-1")
    with pytest.raises(ClientError, match="Step id 's-1' is not valid"):
        steps.describe_step(ClusterId=CLUSTER, StepId="s-1")
    with pytest.raises(ClientError, match="CreateApplication is not offered"):
        serverless.create_application(releaseLabel="emr-7.9.0", type="SPARK", clientToken="x")
    with pytest.raises(ClientError, match="JobRun 00none does not exist"):
        serverless.get_job_run(applicationId=APPLICATION, jobRunId="00none")
    assert [each["Id"] for each in steps.list_clusters()["Clusters"]] == [CLUSTER]
    assert serverless.get_application(applicationId=APPLICATION)["application"]["state"] == "STARTED"


def test_a_job_run_is_told_as_it_was_asked_for_and_once_for_a_token(aws: Served) -> None:
    run_id = start(aws, "print('done')", sparkSubmitParameters="--conf 'spark.app.name=a b'")
    assert start(aws, "print('done')") == run_id
    found = job_run(aws, run_id, "SUCCESS", "FAILED")
    assert (found["state"], found["name"], found["executionRole"]) == ("SUCCESS", "run", ROLE)
    assert found["arn"].endswith(f"/applications/{APPLICATION}/jobruns/{run_id}")
    assert '"spark.app.name": "a b"' in output(aws, run_id)
    log = f"{LOGS}applications/{APPLICATION}/jobs/{run_id}/SPARK_DRIVER/stdout.gz"
    assert log.removeprefix("s3://") in aws.s3.objects
    listed = aws.client("emr-serverless").list_job_runs(applicationId=APPLICATION, states=["SUCCESS", "FAILED"])
    assert [each["id"] for each in listed["jobRuns"]] == [run_id]


def test_a_job_run_that_fails_or_is_cancelled(aws: Served) -> None:
    failed = start(aws, "raise SystemExit('no such table')")
    assert job_run(aws, failed, "FAILED")["stateDetails"] == "spark-submit ended with 1: no such table"
    run_id = start(aws, SLEEP, "other")
    eventually(lambda: output(aws, run_id), lambda text: "began" in text)
    client = aws.client("emr-serverless")
    client.cancel_job_run(applicationId=APPLICATION, jobRunId=run_id)
    assert job_run(aws, run_id, "CANCELLED")["stateDetails"] == "It was cancelled."
    with pytest.raises(ClientError, match="is in CANCELLED state"):
        client.cancel_job_run(applicationId=APPLICATION, jobRunId=run_id)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"retryPolicy": {"maxAttempts": 3}}, "does not take retryPolicy"),
        ({"mode": "STREAMING"}, "the mode BATCH only"),
        ({"jobDriver": {"hive": {"query": "q"}}}, "sparkSubmit only"),
        ({"jobDriver": {"sparkSubmit": {"entryPoint": "main.py"}}}, "takes files from S3 only"),
        ({"configurationOverrides": {"applicationConfiguration": [{"classification": "hive-site"}]}}, "hive-site"),
        ({"configurationOverrides": {"monitoringConfiguration": {"cloudWatchLoggingConfiguration": {"enabled": True}}}},
         "cloudWatchLogging"),
        ({"jobDriver": {"sparkSubmit": {"entryPoint": ENTRY, "sparkSubmitParameters": "--class X"}}}, "take --class X"),
        ({"jobDriver": {"sparkSubmit": {"entryPoint": ENTRY, "sparkSubmitParameters": "--conf 'a"}}}, "No closing"),
    ],
)  # fmt: skip
def test_other_job_runs_are_refused(aws: Served, changes: dict[str, Any], said: str) -> None:
    asked = {"applicationId": APPLICATION, "clientToken": "t", "executionRoleArn": ROLE}
    asked |= {"jobDriver": {"sparkSubmit": {"entryPoint": ENTRY}}, **changes}
    with pytest.raises(ClientError, match=said) as caught:
        aws.client("emr-serverless").start_job_run(**asked)
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert aws.runs["emr-serverless"].newest_first() == []


def test_after_a_restart_what_was_under_way_has_failed_and_the_rest_is_known(aws: Served, tmp_path: Path) -> None:
    done = add(aws, "print()")
    step(aws, done, "COMPLETED")
    under_way = add(aws, SLEEP)
    eventually(lambda: output(aws, under_way), lambda text: "began" in text)
    again = SparkRuns(tmp_path / "emr", aws.here.prepared, aws.s3.client(), 1)
    assert [(run.id, run.state) for run in again.newest_first()] == [(under_way, "FAILED"), (done, "SUCCEEDED")]
    found = again.get(under_way)
    assert found is not None
    assert (found.reason, found.ended is not None) == (RESTARTED, True)
    assert found.wanted.entry == ENTRY
    again.close()


def test_a_run_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    program = f"import os, time; open({str(noted)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    command = [sys.executable, child.__file__, sys.executable, "-c", program]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        pid = int(eventually(lambda: noted.read_text() if noted.exists() else "", bool))
        assert os.getpgid(pid) == guard.pid
    finally:
        guard.stdin.close()  # type: ignore[union-attr]
    assert guard.wait(10) == -signal.SIGKILL
    eventually(lambda: Path(f"/proc/{pid}/stat").exists(), lambda there: not there)


def test_what_does_not_heed_sigterm_is_killed(tmp_path: Path, aws: Served) -> None:
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('began', flush=True); time.sleep(60)"
    runs = SparkRuns(tmp_path / "own", lambda *_: ([sys.executable, "-c", stubborn], {}), aws.s3.client(), 1, 0.1)
    run = runs.start(Run("1", Wanted(ENTRY), {}, ""))
    log = runs.folder("1") / "stdout"
    eventually(lambda: log.read_text() if log.exists() else "", lambda text: "began" in text)
    assert runs.cancel("1")
    runs.close()
    assert (run.state, run.exit_code) == ("CANCELLED", -signal.SIGKILL)


def test_a_log_that_can_t_be_written_is_told_with_the_run(tmp_path: Path) -> None:
    runs = SparkRuns(tmp_path / "own", lambda *_: ([sys.executable, "-c", ""], {}), _Refusing(), 1)
    run = runs.start(Run("1", Wanted(ENTRY), {}, f"{LOGS}x/"))
    eventually(lambda: run.ended, bool)
    runs.close()
    assert run.state == "SUCCEEDED"
    assert run.reason.startswith(f"Its logs could not be written to {LOGS}x/")


class _Refusing:
    """A store that takes nothing."""

    def put_object(self, **told: object) -> None:
        """Refuse."""
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": str(told["Key"])}}, "PutObject")
