"""`cdc-lake run` as a process: a change is visible within seconds, a signal ends it, and its reports are in Dagster."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake.instance import dagster_home
from cdc_lake_tests.helpers.command_line import CommandLine

BOUND = 180.0


def shipped(cli: CommandLine, day: str) -> bool:
    """Return whether the lake shows this date of the order."""
    return bool(cli.query(f"SELECT 1 AS yes FROM cdc_events WHERE order_id = 11070 AND shipped_date = DATE '{day}'"))


def ship(cli: CommandLine, day: str) -> None:
    """Set this date of the order, and wait until the lake shows it."""
    cli.query_source(f"update datalake.orders set shipped_date = '{day}' where order_id = 11070 returning order_id")
    until = Retrying(retry=retry_if_result(lambda yes: not yes), stop=stop_after_delay(BOUND), wait=wait_fixed(1))
    assert until(shipped, cli, day)


@pytest.mark.usefixtures("demo")
def test_changes_are_visible_until_a_signal_ends_the_process(cli: CommandLine) -> None:
    running = cli.start("cdc-lake", "run", "northwind", "--report", "600")
    try:
        for day in ("1998-07-01", "1998-07-02"):
            ship(cli, day)
    finally:
        running.send_signal(signal.SIGTERM)
    assert running.wait(BOUND) == 0
    assert "equal" in cli.run("cdc-lake", "verify", "northwind").stdout
    stored: dict[str, Any] = reported(cli)
    assert stored["commits"] >= 2


@pytest.mark.usefixtures("demo")
def test_a_process_whose_jvm_is_killed_ends_with_the_reason(cli: CommandLine) -> None:
    with ThreadPoolExecutor() as threads:
        running = threads.submit(cli.run, "cdc-lake", "run", "northwind", ok=False)
        ship(cli, "1998-07-03")
        [jvm] = [
            each
            for command in psutil.Process().children(recursive=True)
            if command.cmdline()[-2:] == ["run", "northwind"]
            for each in command.children()
            if each.name() == "java"
        ]
        jvm.kill()
        ended = running.result(BOUND)
    assert ended.returncode == 1
    assert f"Spark's JVM (process {jvm.pid}) ended with code -9" in ended.stderr


def reported(cli: CommandLine) -> dict[str, Any]:
    """Return the numbers of the lake asset's newest materialisation."""
    import dagster as dg

    with dg.DagsterInstance.from_config(str(dagster_home(cli.stack.home.path))) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey(["northwind", "lake", "cdc_events_lake"]))
    assert event is not None
    assert event.asset_materialization is not None
    assert event.run_id == "", "it is stored without a run"
    return {name: value.value for name, value in event.asset_materialization.metadata.items()}
