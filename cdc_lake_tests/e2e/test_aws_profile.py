"""Northwind with the aws profile and emulated AWS APIs: the same counts as the demo, and a clean verification.

The program is the one that `make aws-smoke` runs in an account. It uses boto3 and PyAthena only: plugin and connector
by `kafkaconnect`, jobs by `emr-serverless` and then by `emr`, the database's login from Secrets Manager, the broker's
address from `kafka`, dashboards in QuickSight.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cdc_lake_tests.aws_api.served import AwsApi, aws_api, client
from cdc_lake_tests.e2e.aws_account import ACCOUNT, variables
from cdc_lake_tests.e2e.demo_summary import assert_demo_is_complete
from cdc_lake_tests.helpers.command_line import CommandLine
from cdc_lake_tests.pytest_hooks.long_test_sizes import full_only
from infra.local.stack.attach import load_endpoints


@pytest.fixture(scope="module")
def aws(cli: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsApi]:
    """Run the emulated AWS APIs on the stack."""
    with aws_api(load_endpoints(cli.stack.home.path), tmp_path_factory.mktemp("aws")) as found:
        yield found


@pytest.fixture(scope="module")
def serverless(cli: CommandLine, aws: AwsApi) -> CommandLine:
    """Return the command line with the aws profile and EMR Serverless."""
    return CommandLine(cli.stack, variables(cli, aws, "emr-serverless"))


@pytest.fixture(scope="module")
def summary(serverless: CommandLine) -> dict[str, Any]:
    """Run the smoke test, and return its summary."""
    # The demo of another test module left its connector, which only the local profile can remove.
    CommandLine(serverless.stack, {**serverless.environment, "CDC_LAKE_PROFILE": "local"}).run(
        "cdc-lake", "reset", "northwind", "--yes"
    )
    found: dict[str, Any] = json.loads(
        serverless.run("cdc-lake", "aws", "smoke", "--yes", "--json", timeout=1200).stdout
    )
    return found


@pytest.mark.timeout(1500)
def test_the_smoke_test_has_the_counts_of_the_demo(summary: dict[str, Any]) -> None:
    assert_demo_is_complete(summary)
    assert summary["account"] == ACCOUNT
    [verified] = summary["verify"].values()
    assert verified["clean"] is True
    assert verified["compared"] > 800
    assert {"reset", "load", "source", "topic", "raw", "lake", "dataset", "dashboard", "verify", "total"} <= summary[
        "seconds"
    ].keys()
    assert summary["dashboard"].startswith("https://")


def test_everything_was_created_by_aws_apis(summary: dict[str, Any], aws: AwsApi) -> None:
    assert summary
    [connector] = aws.msk_connect.connectors.values()
    assert (connector["connectorName"], connector["connectorState"]) == ("cdc-lake-northwind", "RUNNING")
    runs = list(aws.job_runs.all.values())
    assert {run.state for run in runs} == {"SUCCEEDED"}
    names = {run.name.split("-")[0] for run in runs}
    assert names >= {"upsert", "verify"}
    assert "land" not in names, "a small batch was landed on EMR"
    assert {each["IngestionStatus"] for each in aws.quicksight.of("Ingestion")} == {"COMPLETED"}
    [dashboard] = aws.quicksight.of("Dashboard")
    assert dashboard["id"].startswith("cdc-lake-northwind")


@full_only
def test_steps_of_an_emr_cluster_apply_the_next_change(summary: dict[str, Any], cli: CommandLine, aws: AwsApi) -> None:
    assert summary
    steps = CommandLine(cli.stack, variables(cli, aws, "emr"))
    for _ in range(13):  # 830 events each: EMR lands a batch of more than 10,000
        cli.query_source("update datalake.orders set freight = freight returning 1")
    ((day,),) = cli.query_source(
        "update datalake.orders set required_date = required_date + 1 where order_id = 10350 "
        "returning required_date::text"
    )
    steps.run("dagster", "asset", "materialize", "--select", 'group:"northwind"', "-m", "cdc_lake.definitions")
    day_in_lake = "SELECT CAST(required_date AS varchar) AS day FROM cdc_events WHERE order_id = 10350"
    assert steps.query(day_in_lake) == [{"day": day}]
    assert json.loads(steps.run("cdc-lake", "verify", "northwind", "--json").stdout)["clean"] is True
    runs = list(aws.steps.all.values())
    assert {run.state for run in runs} == {"SUCCEEDED"}
    assert {run.name.split("-")[0] for run in runs} >= {"land", "upsert", "verify"}


def test_a_reset_leaves_nothing_in_the_account(
    summary: dict[str, Any], serverless: CommandLine, cli: CommandLine, aws: AwsApi
) -> None:
    assert summary
    assert "removed dashboard arn:aws:quicksight" in serverless.run("cdc-lake", "reset", "northwind", "--yes").stdout
    assert [aws.quicksight.of(kind) for kind in ("Dashboard", "Analysis", "DataSet", "DataSource")] == [[]] * 4
    assert aws.msk_connect.connectors == {}
    at = load_endpoints(cli.stack.home.path)
    tables = client(at, at.aws_endpoint, "glue").get_tables(DatabaseName="datalake")["TableList"]
    assert [table["Name"] for table in tables if "cdc_events" in table["Name"] or table["Name"] == "order_items"] == []
    again = serverless.run("cdc-lake", "reset", "northwind", "--yes").stdout
    assert again == "pipeline northwind has nothing to remove\n"
