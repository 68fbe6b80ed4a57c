"""The Spark server on a real session: jobs of several processes, errors, kills of each side, and changed code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cdc_lake import profile
from cdc_lake.contract.errors import LeaseLostError
from cdc_lake.profile_local import SPARK_SOCKET
from cdc_lake_tests.helpers.local_stack import running_stack
from cdc_lake_tests.integration.resources import spark_jobs
from resources.errors import JobFailed, ResourceError
from resources.spark.job_server.client import SparkServerClient
from resources.waiting import until


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServerClient]:
    """Spark of a server, which the first job starts."""
    home, folder = tmp_path_factory.mktemp("stack"), tmp_path_factory.mktemp("s")
    with pytest.MonkeyPatch.context() as patch, running_stack(home, ["s3"]):
        patch.setenv("CDC_LAKE_HOME", str(home))
        patch.setenv(SPARK_SOCKET, str(folder / "spark.sock"))
        spark = profile.spark()
        assert isinstance(spark, SparkServerClient)
        yield spark
        with suppress(psutil.NoSuchProcess):
            psutil.Process(spark.run(spark_jobs.session, None).process).kill()


def test_processes_share_a_session(served: SparkServerClient) -> None:
    here = served.run(spark_jobs.session, None)
    script = (
        "from cdc_lake import profile; from cdc_lake_tests.integration.resources import spark_jobs;"
        "print(profile.spark().run(spark_jobs.session, None).application)"
    )
    there = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert there.strip() == here.application
    assert here.process != os.getpid()
    assert Path(served.path).stat().st_mode & 0o777 == 0o600


def test_jobs_run_at_the_same_time(served: SparkServerClient, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(served.run, spark_jobs.wait, tmp_path)
        _started(tmp_path)
        assert served.run(spark_jobs.count, 10) == 10
        (tmp_path / "end").touch()
        waiting.result()


def test_a_third_job_waits(served: SparkServerClient, tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    with ThreadPoolExecutor() as threads:
        running = []
        for folder in folders:
            folder.mkdir()
            running.append(threads.submit(served.run, spark_jobs.wait, folder))
            _started(folder)
        third = threads.submit(served.run, spark_jobs.count, 10)
        with pytest.raises(TimeoutError):
            third.result(2)
        (folders[0] / "end").touch()
        assert third.result(60) == 10
        (folders[1] / "end").touch()
        for each in running:
            each.result()


def test_errors_of_jobs_are_raised_with_the_servers_traceback(served: SparkServerClient) -> None:
    with pytest.raises(LeaseLostError) as raised:
        served.run(spark_jobs.fail, "the lease is lost")
    assert str(raised.value) == "the lease is lost"
    assert "spark_jobs.py" in raised.value.__notes__[0]
    with pytest.raises(JobFailed, match=r"spark_jobs\.fail_oddly: it raised _OddError: an odd error") as odd:
        served.run(spark_jobs.fail_oddly, None)
    assert "spark_jobs.py" in odd.value.__notes__[0]


def test_a_job_of_a_killed_process_is_cancelled(served: SparkServerClient, tmp_path: Path) -> None:
    script = (
        "import pathlib, sys; from cdc_lake import profile;"
        "from cdc_lake_tests.integration.resources import spark_jobs;"
        "profile.spark().run(spark_jobs.wait, pathlib.Path(sys.argv[1]))"
    )
    sender = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    _started(tmp_path)
    assert served.run(spark_jobs.session, None).active_jobs >= 1
    sender.kill()
    sender.wait()
    _no_jobs(served)


def test_cancel_ends_the_jobs_of_this_process(served: SparkServerClient, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(served.run, spark_jobs.wait, tmp_path)
        _started(tmp_path)
        served.cancel()
        with pytest.raises(JobFailed, match="cancelled"):
            waiting.result()
    _no_jobs(served)


def test_a_killed_server_fails_its_jobs_and_the_next_job_starts_another(
    served: SparkServerClient, tmp_path: Path
) -> None:
    first = served.run(spark_jobs.session, None).process
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(served.run, spark_jobs.wait, tmp_path)
        _started(tmp_path)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(JobFailed, match="the Spark server ended"):
            waiting.result()
    assert served.run(spark_jobs.session, None).process != first


def test_a_killed_jvm_fails_its_jobs_and_the_next_job_starts_another(served: SparkServerClient, tmp_path: Path) -> None:
    jvm = served.run(spark_jobs.session, None).jvm
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(served.run, spark_jobs.wait, tmp_path)
        _started(tmp_path)
        os.kill(jvm, signal.SIGKILL)
        with pytest.raises(ResourceError, match=f"Spark's JVM \\(process {jvm}\\) ended"):
            waiting.result()
    idle = served.run(spark_jobs.session, None).jvm
    assert idle != jvm
    os.kill(idle, signal.SIGKILL)
    # The process's first thread is a zombie before the others have ended, and nobody can wait for it until then.
    until(lambda: _state(idle), lambda state: state == ("zombie", 1), seconds=30, what="all threads of the JVM to end")
    assert served.run(spark_jobs.session, None).jvm not in (idle, jvm)


def test_changed_code_replaces_the_server(served: SparkServerClient, tmp_path: Path) -> None:
    before = served.run(spark_jobs.session, None)
    (tmp_path / "changed.py").touch()
    changed = served.model_copy(update={"code": [*served.code, str(tmp_path)]})
    assert changed.run(spark_jobs.session, None).process != before.process
    _, alive = psutil.wait_procs([psutil.Process(before.process)] if psutil.pid_exists(before.process) else [], 30)
    assert not alive


def _state(pid: int) -> tuple[str, int]:
    """Return the status of a process's first thread, and the number of its threads."""
    return psutil.Process(pid).status(), len(list(Path(f"/proc/{pid}/task").iterdir()))


def _started(folder: Path) -> None:
    until((folder / "started").exists, bool, seconds=60, what="the job to start")


def _no_jobs(served: SparkServerClient) -> None:
    until(
        lambda: served.run(spark_jobs.session, None).active_jobs,
        lambda jobs: jobs == 0,
        seconds=30,
        what="the job to be cancelled",
    )
