"""Runs whose process was killed together with its launcher are marked as failed and retried."""

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
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon
from resources.deployment import Deployment

DEPLOYMENT = Deployment(profile="local", source_host="nowhere", password_reference="", pages="")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """A Dagster instance as `cdc-lake dev` creates it: runs are processes of this machine."""
    with dg.DagsterInstance.local_temp(str(tmp_path)) as temporary:
        yield temporary


@pytest.fixture
def land(shop: Shop, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """A landing sensor with pending records."""
    for number in range(5):
        shop.order(number + 1)
    return Daemon.for_sensor("shop_land", shop, instance, clock)


def report_process(instance: dg.DagsterInstance, run: dg.DagsterRun, pid: int, host: str | None = "") -> None:
    """Report a run's process, and then its host: "" means this host; None means that it was not reported."""
    instance.report_engine_event(f"Started process for run (pid: {pid}).", run, EngineEventData.in_process(pid))
    if host is not None:
        instance.add_run_tags(run.run_id, {run_host.TAG: host or run_host.this_host()})


def ended_pid() -> int:
    """Return the pid of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    return process.pid


def test_a_run_without_its_process_is_marked_as_failed(land: Daemon, instance: dg.DagsterInstance) -> None:
    run = land.run()
    report_process(instance, run, ended_pid())
    assert land.skip().startswith(f"run {run.run_id} of this sensor failed; the next run is in ")
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    assert found.status == dg.DagsterRunStatus.FAILURE
    land.clock.advance(5)
    land.request()


def test_a_run_with_a_living_process_is_active(land: Daemon, instance: dg.DagsterInstance) -> None:
    run = land.run()
    report_process(instance, run, os.getpid())
    assert land.skip() == f"run {run.run_id} of this sensor is active"


def test_a_run_that_has_not_reported_its_process_is_active(land: Daemon) -> None:
    run = land.run(dg.DagsterRunStatus.STARTING)
    assert land.skip() == f"run {run.run_id} of this sensor is active"


def test_a_run_on_another_host_is_active(land: Daemon, instance: dg.DagsterInstance) -> None:
    run = land.run()
    report_process(instance, run, ended_pid(), host="another")
    land.clock.advance(3600)
    assert land.skip() == f"run {run.run_id} of this sensor is active"


def test_a_run_without_host_tag_fails_only_after_a_grace_period(land: Daemon, instance: dg.DagsterInstance) -> None:
    """Its process loads definitions on another host, or was killed here before it reported its host."""
    run = land.run()
    report_process(instance, run, ended_pid(), host=None)
    assert land.skip() == f"run {run.run_id} of this sensor is active"
    land.clock.advance(121)
    assert fail_orphans(instance) == [run.run_id]


def test_a_run_is_tagged_with_its_host_when_it_begins(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile, "resources", lambda: {"deployment": DEPLOYMENT})

    @dg.asset
    def probe(deployment: Deployment) -> None:
        assert deployment.profile == "local"

    job = dg.Definitions(assets=[probe], resources=profile.run_resources()).resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance)
    found = instance.get_run_by_id(result.run_id)
    assert found is not None
    assert found.tags[run_host.TAG] == run_host.this_host()


def test_the_host_name_can_be_set_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    own = run_host.this_host()
    monkeypatch.setattr("socket.gethostname", lambda: "ip-10-0-0-7")
    assert run_host.this_host() != own
    monkeypatch.setenv(run_host.VARIABLE, "code")
    assert run_host.this_host() == "code"


def test_a_later_process_with_the_same_pid_is_not_the_runs_process(
    land: Daemon, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = land.run()
    report_process(instance, run, os.getpid())
    monkeypatch.setattr("psutil.Process.create_time", lambda _: land.clock.time() + 60)
    assert "of this sensor failed" in land.skip()


def test_a_run_that_succeeded_meanwhile_is_not_marked_as_failed(
    land: Daemon, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended between the query for active runs and the check of its process."""
    run = land.run()
    report_process(instance, run, ended_pid())
    monkeypatch.setattr(instance, "get_run_by_id", lambda _: run.with_status(dg.DagsterRunStatus.SUCCESS))
    assert fail_orphans(instance) == []


def test_killed_runs_of_other_launchers_do_not_fill_the_queue(land: Daemon, instance: dg.DagsterInstance) -> None:
    """Such as runs of a command line. Dagster launches nothing while ten runs are in progress."""
    killed = [create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED) for _ in range(10)]
    queued = create_run_for_test(instance, status=dg.DagsterRunStatus.NOT_STARTED)
    for run in killed:
        report_process(instance, run, ended_pid())
    land.request()
    statuses = {run.run_id: run.status for run in instance.get_runs()}
    assert {statuses[run.run_id] for run in killed} == {dg.DagsterRunStatus.FAILURE}
    assert statuses[queued.run_id] == dg.DagsterRunStatus.NOT_STARTED
