"""Northwind with the aws profile, against the stack's AWS endpoint: the same counts, the same stories, verify clean.

By the very program that `make aws-smoke` runs in an account.

By boto3 and PyAthena alone: plugin and connector by `kafkaconnect`, jobs by `emr-serverless` and then by `emr`, the
database's login from Secrets Manager, the broker's address from `kafka`, dashboards in QuickSight.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdc_lake_tests.e2e.aws_account import ACCOUNT, client, variables
from cdc_lake_tests.e2e.conftest import CommandLine
from cdc_lake_tests.e2e.test_demo import check
from infra.local.attach import load_endpoints
from infra.local.aws_endpoint.emr import CLUSTER
from infra.local.aws_endpoint.emr_serverless import APPLICATION


@pytest.fixture(scope="module")
def serverless(cli: CommandLine) -> CommandLine:
    """The command line of somebody whose pipelines are on AWS, with EMR Serverless."""
    return CommandLine(cli.stack, variables(cli, "emr-serverless"))


@pytest.fixture(scope="module")
def summary(serverless: CommandLine) -> dict[str, Any]:
    """What the smoke says at its end."""
    # The connector of another test's demo is no connector of MSK Connect: its own profile removes it.
    CommandLine(serverless.stack, {**serverless.environment, "CDC_LAKE_PROFILE": "local"}).run(
        "cdc-lake", "reset", "northwind", "--yes"
    )
    found: dict[str, Any] = json.loads(
        serverless.run("cdc-lake", "aws", "smoke", "--yes", "--json", timeout=1200).stdout
    )
    return found


@pytest.mark.timeout(1500)
def test_the_smoke(summary: dict[str, Any]) -> None:
    check(summary)
    assert summary["account"] == ACCOUNT
    assert [found["clean"] for found in summary["verify"].values()] == [True]
    assert {"reset", "load", "source", "topic", "raw", "lake", "dataset", "dashboard", "verify", "total"} <= summary[
        "seconds"
    ].keys()
    assert summary["dashboard"].startswith("https://")


def test_everything_was_made_by_aws_s_apis(summary: dict[str, Any], cli: CommandLine) -> None:
    assert summary
    at = load_endpoints(cli.stack.home.path)
    (connector,) = client(at, "kafkaconnect").list_connectors()["connectors"]
    assert (connector["connectorName"], connector["connectorState"]) == ("cdc-lake-northwind", "RUNNING")
    runs = client(at, "emr-serverless").list_job_runs(applicationId=APPLICATION)["jobRuns"]
    assert {run["state"] for run in runs} == {"SUCCESS"}
    assert {run["name"].rpartition("-")[0].split("-")[0] for run in runs} >= {"land", "upsert", "verify"}
    quicksight = client(at, "quicksight")
    (data_set,) = quicksight.list_data_sets(AwsAccountId=ACCOUNT)["DataSetSummaries"]
    ingestions = quicksight.list_ingestions(AwsAccountId=ACCOUNT, DataSetId=data_set["DataSetId"])["Ingestions"]
    assert {each["IngestionStatus"] for each in ingestions} == {"COMPLETED"}
    (dashboard,) = quicksight.list_dashboards(AwsAccountId=ACCOUNT)["DashboardSummaryList"]
    assert dashboard["DashboardId"].startswith("cdc-lake-northwind")


def test_verify_is_clean(summary: dict[str, Any], serverless: CommandLine) -> None:
    assert summary
    found = json.loads(serverless.run("cdc-lake", "verify", "northwind", "--json").stdout)
    assert found["clean"] is True
    assert found["tables"]["cdc_events"]["source_rows"] > 800


def test_the_next_change_by_steps_of_a_cluster(summary: dict[str, Any], cli: CommandLine) -> None:
    assert summary
    steps = CommandLine(cli.stack, variables(cli, "emr"))
    ((day,),) = cli.ask_source(
        "update datalake.orders set required_date = required_date + 1 where order_id = 10350 "
        "returning required_date::text"
    )
    steps.run("dagster", "asset", "materialize", "--select", 'group:"northwind"', "-m", "cdc_lake.definitions")
    in_the_lake = "SELECT CAST(required_date AS varchar) AS day FROM cdc_events WHERE order_id = 10350"
    assert steps.query(in_the_lake) == [{"day": day}]
    assert json.loads(steps.run("cdc-lake", "verify", "northwind", "--json").stdout)["clean"] is True
    listed = client(load_endpoints(cli.stack.home.path), "emr").list_steps(ClusterId=CLUSTER)["Steps"]
    assert {step["Status"]["State"] for step in listed} == {"COMPLETED"}
    assert {step["Name"].split("-")[0] for step in listed} >= {"land", "upsert", "verify"}


def test_a_reset_leaves_nothing_in_the_account(
    summary: dict[str, Any], serverless: CommandLine, cli: CommandLine
) -> None:
    assert summary
    assert "removed dashboard arn:aws:quicksight" in serverless.run("cdc-lake", "reset", "northwind", "--yes").stdout
    at = load_endpoints(cli.stack.home.path)
    quicksight = client(at, "quicksight")
    assert quicksight.list_dashboards(AwsAccountId=ACCOUNT)["DashboardSummaryList"] == []
    assert quicksight.list_analyses(AwsAccountId=ACCOUNT)["AnalysisSummaryList"] == []
    assert quicksight.list_data_sets(AwsAccountId=ACCOUNT)["DataSetSummaries"] == []
    assert quicksight.list_data_sources(AwsAccountId=ACCOUNT)["DataSources"] == []
    assert client(at, "kafkaconnect").list_connectors()["connectors"] == []
    tables = client(at, "glue").get_tables(DatabaseName="datalake")["TableList"]
    assert [table["Name"] for table in tables if "cdc_events" in table["Name"] or table["Name"] == "order_items"] == []
    again = serverless.run("cdc-lake", "reset", "northwind", "--yes").stdout
    assert again == "pipeline northwind had made nothing\n"
