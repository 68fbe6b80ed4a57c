"""A run whose process was killed together with whoever watched it: failed, and followed by the next one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.events import EngineEventData
from dagster._core.test_utils import create_run_for_test

from cdc_lake import profile
from cdc_lake.pipeline.automation import run_host
from cdc_lake.pipeline.automation.orphaned_runs import fail_orphans
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon
from resources.deployment import Deployment

DEPLOYMENT = Deployment(profile="local", source_host="nowhere", password_reference="", pages="")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """Dagster's state as `cdc-lake dev` has it: runs are processes of this machine."""
    with dg.DagsterInstance.local_temp(str(tmp_path)) as made:
        yield made


@pytest.fixture
def waiting(shop: World, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """A landing sensor that has something to do."""
    for number in range(5):
        shop.order(number + 1)
    return Daemon.of("shop_orders_land", shop, instance, clock)


def say_pid(instance: dg.DagsterInstance, run: dg.DagsterRun, pid: int, host: str | None = "") -> None:
    """What a run's process reports first, and then its host: this one, or None where it did not get there."""
    instance.report_engine_event(f"Started process for run (pid: {pid}).", run, EngineEventData.in_process(pid))
    if host is not None:
        instance.add_run_tags(run.run_id, {run_host.TAG: host or run_host.this_host()})


def ended() -> int:
    """The pid of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    return process.pid


def test_a_run_whose_process_is_gone_has_failed(waiting: Daemon, instance: dg.DagsterInstance) -> None:
    run = waiting.run()
    say_pid(instance, run, ended())
    assert waiting.skip().startswith(f"run {run.run_id} of this sensor failed; the next one in ")
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    assert found.status == dg.DagsterRunStatus.FAILURE
    waiting.clock.go(5)
    waiting.request()


def test_a_run_whose_process_lives_is_under_way(waiting: Daemon, instance: dg.DagsterInstance) -> None:
    run = waiting.run()
    say_pid(instance, run, os.getpid())
    assert waiting.skip() == f"run {run.run_id} of this sensor is active"


def test_a_run_that_has_not_said_its_process_is_under_way(waiting: Daemon) -> None:
    run = waiting.run(dg.DagsterRunStatus.STARTING)
    assert waiting.skip() == f"run {run.run_id} of this sensor is active"


def test_a_run_on_another_host_is_under_way_whatever_runs_here(waiting: Daemon, instance: dg.DagsterInstance) -> None:
    run = waiting.run()
    say_pid(instance, run, ended(), host="another")
    waiting.clock.go(3600)
    assert waiting.skip() == f"run {run.run_id} of this sensor is active"


def test_a_run_that_has_not_said_its_host_may_be_on_another(waiting: Daemon, instance: dg.DagsterInstance) -> None:
    """Its process is loading the definitions there, or was killed here before it had."""
    run = waiting.run()
    say_pid(instance, run, ended(), host=None)
    assert waiting.skip() == f"run {run.run_id} of this sensor is active"
    waiting.clock.go(121)
    assert fail_orphans(instance) == [run.run_id]


def test_a_run_says_its_host_when_it_begins(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "resources", lambda: {"deployment": DEPLOYMENT})

    @dg.asset
    def probe(deployment: Deployment) -> None:
        assert deployment.profile == "local"

    job = dg.Definitions(assets=[probe], resources=profile.bound()).resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance)
    found = instance.get_run_by_id(result.run_id)
    assert found is not None
    assert found.tags[run_host.TAG] == run_host.this_host()


def test_a_code_server_that_takes_anothers_place_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    own = run_host.this_host()
    monkeypatch.setattr("socket.gethostname", lambda: "ip-10-0-0-7")
    assert run_host.this_host() != own
    monkeypatch.setenv(run_host.VARIABLE, "code")
    assert run_host.this_host() == "code"


def test_a_later_process_with_the_same_pid_is_another(
    waiting: Daemon, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = waiting.run()
    say_pid(instance, run, os.getpid())
    monkeypatch.setattr("psutil.Process.create_time", lambda _: waiting.clock.time() + 60)
    assert "of this sensor failed" in waiting.skip()


def test_a_process_that_ended_in_good_order_has_reported_that(
    waiting: Daemon, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the question for runs and the look at the process."""
    run = waiting.run()
    say_pid(instance, run, ended())
    monkeypatch.setattr(instance, "get_run_by_id", lambda _: run.with_status(dg.DagsterRunStatus.SUCCESS))
    assert fail_orphans(instance) == []


def test_runs_of_others_that_were_killed_do_not_fill_the_queue(waiting: Daemon, instance: dg.DagsterInstance) -> None:
    """Of a command line, say: Dagster launches nothing while ten runs are in progress."""
    killed = [create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED) for _ in range(10)]
    waits = create_run_for_test(instance, status=dg.DagsterRunStatus.NOT_STARTED)
    for run in killed:
        say_pid(instance, run, ended())
    waiting.request()
    statuses = {run.run_id: run.status for run in instance.get_runs()}
    assert {statuses[run.run_id] for run in killed} == {dg.DagsterRunStatus.FAILURE}
    assert statuses[waits.run_id] == dg.DagsterRunStatus.NOT_STARTED
