"""Dagster's UI and daemon: what a person launches there succeeds, and sensors carry a change without anybody."""

from __future__ import annotations

import pytest

from cdc_lake_tests.e2e.conftest import CommandLine
from cdc_lake_tests.e2e.dagster_ui import Ui, until

_LAUNCH = """
mutation Launch($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}
"""
_RUN = "query Run($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"


@pytest.mark.timeout(600)
def test_a_run_from_the_ui_and_one_from_the_sensors(ui: Ui, cli: CommandLine) -> None:
    selector = {
        "repositoryName": "__repository__",
        "repositoryLocationName": "cdc_lake.definitions",
        "pipelineName": "northwind",
    }
    launched = ui.ask(_LAUNCH, params={"selector": selector, "mode": "default", "runConfigData": {}})["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    run = launched["run"]["runId"]
    status = until(
        lambda: ui.ask(_RUN, id=run)["runOrError"]["status"], lambda s: s in {"SUCCESS", "FAILURE", "CANCELED"}, 180
    )
    assert status == "SUCCESS"

    # More than flush_records changes: the sensor need not wait for flush_seconds.
    changed = dict(
        cli.ask_source(
            "update datalake.orders set required_date = required_date + 1 where order_id between 10300 and 10379 "
            "returning order_id, required_date::text"
        )
    )
    until(
        lambda: cli.query("SELECT CAST(required_date AS varchar) AS d FROM cdc_events WHERE order_id = 10350")[0]["d"],
        lambda found: found == changed[10350],
        240,
    )
