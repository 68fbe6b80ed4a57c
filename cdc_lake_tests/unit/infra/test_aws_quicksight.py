"""QuickSight's API over an engine in memory, asked by boto3; each answer is held against the service's model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdc_lake_tests.fakes.boards import BOARD, GIVEN, ROWS
from cdc_lake_tests.fakes.quicksight import OWNER, REGION, Served, served
from infra.local.aws_endpoint.engine import SYSTEM, USER_ERROR, QueryFailed
from infra.local.aws_endpoint.quicksight_state import ACCOUNT
from resources import quicksight_data
from resources.quicksight_definition import definition
from resources.waiting import until

ARN = f"arn:aws:quicksight:{REGION}:{ACCOUNT}"
OWNED = [{"Principal": OWNER, "Actions": ["quicksight:DescribeDataSet"]}]


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Served]:
    """The API."""
    with served(tmp_path) as found:
        found.engine.columns = dict(GIVEN)
        found.engine.rows = [["ALFKI", 1, 2, "3.50"]]
        yield found


def asked(aws: Served, call: str, **parameters: object) -> dict[str, Any]:
    """A call by boto3."""
    return dict(getattr(aws.client(), call)(AwsAccountId=ACCOUNT, **parameters))


def code(caught: pytest.ExceptionInfo[ClientError]) -> tuple[str, int]:
    """AWS's code of an error, and the HTTP status."""
    said = caught.value.response
    return said["Error"]["Code"], said["ResponseMetadata"]["HTTPStatusCode"]


def source(aws: Served, workgroup: str = "primary") -> str:
    """Make a data source; its ARN."""
    parameters = {"AthenaParameters": {"WorkGroup": workgroup}}
    made = asked(
        aws, "create_data_source", DataSourceId="lake", Name="lake", Type="ATHENA", DataSourceParameters=parameters
    )
    assert made["CreationStatus"] == "CREATION_IN_PROGRESS"
    return str(made["Arn"])


def tables(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - members of a request
    """A dataset's parameters."""
    wanted = quicksight_data.tables(ROWS, f"{ARN}:datasource/lake")
    wanted["PhysicalTableMap"]["custom-sql"]["CustomSql"].update(changes)
    return {"DataSetId": "sales", "Name": "Sales", "ImportMode": "SPICE", **wanted}


def ended(aws: Served, ingestion: str) -> dict[str, Any]:
    """An ingestion once it is through."""
    return until(
        lambda: asked(aws, "describe_ingestion", DataSetId="sales", IngestionId=ingestion)["Ingestion"],
        lambda seen: seen["IngestionStatus"] in ("COMPLETED", "FAILED"),
        seconds=5,
        what="the ingestion to end",
        pause_seconds=0.01,
    )


def test_a_data_source_is_made_and_then_there(aws: Served) -> None:
    arn = source(aws)
    assert arn == f"{ARN}:datasource/lake"
    states = [asked(aws, "describe_data_source", DataSourceId="lake")["DataSource"]["Status"] for _ in range(2)]
    assert states == ["CREATION_IN_PROGRESS", "CREATION_SUCCESSFUL"]
    assert [each["Arn"] for each in asked(aws, "list_data_sources")["DataSources"]] == [arn]
    with pytest.raises(ClientError) as caught:
        source(aws)
    assert code(caught) == ("ResourceExistsException", 409)
    assert dict(caught.value.response)["ResourceType"] == "DATA_SOURCE"


def test_a_change_that_is_under_way_is_a_conflict(aws: Served) -> None:
    source(aws)
    with pytest.raises(ClientError, match="is CREATION_IN_PROGRESS") as caught:
        asked(aws, "update_data_source", DataSourceId="lake", Name="other")
    assert code(caught) == ("ConflictException", 409)


def test_what_is_not_there_is_not_found(aws: Served) -> None:
    for call, parameters in (
        ("describe_data_source", {"DataSourceId": "x"}),
        ("describe_data_set", {"DataSetId": "x"}),
        ("describe_ingestion", {"DataSetId": "x", "IngestionId": "y"}),
        ("describe_analysis", {"AnalysisId": "x"}),
        ("describe_dashboard", {"DashboardId": "x"}),
        ("delete_data_set", {"DataSetId": "x"}),
    ):
        with pytest.raises(ClientError) as caught:
            asked(aws, call, **parameters)
        assert code(caught) == ("ResourceNotFoundException", 404)


def test_a_data_set_in_spice_is_read_at_once_and_has_its_columns(aws: Served) -> None:
    source(aws)
    made = asked(aws, "create_data_set", **tables(), Permissions=OWNED)
    done = ended(aws, made["IngestionId"])
    assert (done["IngestionStatus"], done["RequestType"]) == ("COMPLETED", "INITIAL_INGESTION")
    assert done["RowInfo"] == {"RowsIngested": 1, "RowsDropped": 0, "TotalRowsInDataset": 1}
    assert done["Arn"] == made["IngestionArn"] == f"{ARN}:dataset/sales/ingestion/{made['IngestionId']}"
    assert aws.engine.asked == [f"SELECT * FROM (\n{ROWS.sql}\n) AS custom_sql"]
    found = asked(aws, "describe_data_set", DataSetId="sales")["DataSet"]
    assert [(each["Name"], each["Type"]) for each in found["OutputColumns"]] == [
        (each.name, each.type) for each in ROWS.columns
    ]
    told = asked(aws, "describe_data_set_permissions", DataSetId="sales")
    assert told["Permissions"] == OWNED
    assert [each["DataSetId"] for each in asked(aws, "list_data_sets")["DataSetSummaries"]] == ["sales"]


def test_permissions_are_granted_and_revoked(aws: Served) -> None:
    source(aws)
    asked(aws, "create_data_set", **tables(), Permissions=OWNED)
    more = [{"Principal": OWNER, "Actions": ["quicksight:PassDataSet"]}]
    asked(aws, "update_data_set_permissions", DataSetId="sales", GrantPermissions=more, RevokePermissions=OWNED)
    assert asked(aws, "describe_data_set_permissions", DataSetId="sales")["Permissions"] == more
    with pytest.raises(ClientError, match="Principal anna is no user's"):
        asked(
            aws,
            "update_data_set_permissions",
            DataSetId="sales",
            GrantPermissions=[{"Principal": "anna", "Actions": ["quicksight:PassDataSet"]}],
        )


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (QueryFailed("TABLE_NOT_FOUND: line 1:8: Table 'order_items' does not exist", USER_ERROR), "SQL_EXCEPTION"),
        (QueryFailed("INTERNAL_ERROR: no answer", SYSTEM, retryable=True), "DATA_SOURCE_CONNECTION_FAILED"),
    ],
)
def test_an_ingestion_fails_with_the_engine_s_reason(aws: Served, failure: QueryFailed, kind: str) -> None:
    source(aws)
    aws.engine.failure = failure
    done = ended(aws, asked(aws, "create_data_set", **tables())["IngestionId"])
    assert done["IngestionStatus"] == "FAILED"
    assert done["ErrorInfo"] == {"Type": kind, "Message": str(failure)}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"customer_id": "varchar"}, "The SQL does not give the column order_id; it gives customer_id."),
        ({**GIVEN, "quantity": "varchar"}, "Column quantity is declared as INTEGER, and the SQL gives varchar."),
    ],
)
def test_columns_that_the_sql_does_not_give_fail_the_ingestion(aws: Served, given: dict[str, str], said: str) -> None:
    source(aws)
    aws.engine.columns = given
    done = ended(aws, asked(aws, "create_data_set", **tables())["IngestionId"])
    assert done["ErrorInfo"] == {"Type": "SQL_SCHEMA_MISMATCH_ERROR", "Message": said}


def test_ingestions_are_by_id_and_in_spice_only(aws: Served) -> None:
    source(aws)
    asked(aws, "create_data_set", **{**tables(), "ImportMode": "DIRECT_QUERY"})
    assert asked(aws, "list_ingestions", DataSetId="sales")["Ingestions"] == []
    begun = asked(aws, "create_ingestion", DataSetId="sales", IngestionId="one")
    assert begun["IngestionStatus"] == "INITIALIZED"
    assert ended(aws, "one")["ErrorInfo"]["Type"] == "DATA_SET_NOT_SPICE"
    with pytest.raises(ClientError) as caught:
        asked(aws, "create_ingestion", DataSetId="sales", IngestionId="one")
    assert code(caught) == ("ResourceExistsException", 409)


def test_the_oldest_ingestions_are_forgotten(aws: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.local.aws_endpoint.quicksight_ingestions.KEPT", 2)
    source(aws)
    ended(aws, asked(aws, "create_data_set", **tables())["IngestionId"])
    for number in range(3):
        asked(aws, "create_ingestion", DataSetId="sales", IngestionId=f"number-{number}")
        ended(aws, f"number-{number}")
    listed = asked(aws, "list_ingestions", DataSetId="sales")["Ingestions"]
    assert [each["IngestionId"] for each in listed] == ["number-2", "number-1"]


def test_a_data_set_that_is_deleted_takes_its_ingestions_along(aws: Served) -> None:
    source(aws)
    aws.engine.free.clear()
    asked(aws, "create_data_set", **tables())
    asked(aws, "delete_data_set", DataSetId="sales")
    aws.engine.free.set()
    again = asked(aws, "create_data_set", **tables())
    assert ended(aws, again["IngestionId"])["IngestionStatus"] == "COMPLETED"
    assert len(asked(aws, "list_ingestions", DataSetId="sales")["Ingestions"]) == 1


def test_what_a_data_set_can_t_compute_or_show_is_refused(aws: Served) -> None:
    with pytest.raises(ClientError, match=r"data source .*datasource/lake is not found"):
        asked(aws, "create_data_set", **tables())
    source(aws)
    with pytest.raises(ClientError, match=r"calculated columns \[revenue\] are invalid.*CONTEXTUAL_UNKNOWN_SYMBOL"):
        asked(aws, "create_data_set", **tables(Columns=[{"Name": "customer_id", "Type": "STRING"}]))
    shown = tables()
    shown["LogicalTableMap"]["rows"]["DataTransforms"][-1]["ProjectOperation"]["ProjectedColumns"].append("nothing")
    with pytest.raises(ClientError, match="ProjectedColumns names nothing") as caught:
        asked(aws, "create_data_set", **shown)
    assert code(caught) == ("InvalidParameterValueException", 400)


def board(aws: Served, *, columns: int = 5) -> dict[str, Any]:
    """A dataset with that many of the columns; the parameters of an analysis or dashboard on it."""
    source(aws)
    wanted = tables()
    projected = wanted["LogicalTableMap"]["rows"]["DataTransforms"][-1]["ProjectOperation"]["ProjectedColumns"]
    del projected[columns:]
    arn = asked(aws, "create_data_set", **wanted)["Arn"]
    return {"Name": "Sales", "Definition": definition(BOARD, arn, "sheet")}


def test_a_dashboard_has_versions_and_shows_the_published_one(aws: Served) -> None:
    wanted = board(aws)
    made = asked(aws, "create_dashboard", DashboardId="sales", **wanted, VersionDescription="first")
    assert made["VersionArn"] == f"{ARN}:dashboard/sales/version/1"
    with pytest.raises(ClientError) as caught:
        asked(aws, "update_dashboard", DashboardId="sales", **wanted)
    assert code(caught) == ("ConflictException", 409)
    states = [asked(aws, "describe_dashboard", DashboardId="sales")["Dashboard"]["Version"]["Status"] for _ in range(2)]
    assert states == ["CREATION_IN_PROGRESS", "CREATION_SUCCESSFUL"]
    asked(aws, "update_dashboard", DashboardId="sales", **wanted)
    with pytest.raises(ClientError, match=r"Version 2 of .* is CREATION_IN_PROGRESS"):
        asked(aws, "update_dashboard_published_version", DashboardId="sales", VersionNumber=2)
    asked(aws, "describe_dashboard", DashboardId="sales", VersionNumber=2)
    seen = asked(aws, "describe_dashboard", DashboardId="sales")["Dashboard"]
    assert (seen["Version"]["VersionNumber"], seen["Version"]["Description"]) == (1, "first")
    asked(aws, "update_dashboard_published_version", DashboardId="sales", VersionNumber=2)
    assert asked(aws, "describe_dashboard", DashboardId="sales")["Dashboard"]["Version"]["VersionNumber"] == 2
    listed = asked(aws, "list_dashboard_versions", DashboardId="sales")["DashboardVersionSummaryList"]
    assert [each["VersionNumber"] for each in listed] == [1, 2]
    with pytest.raises(ClientError, match=r"Version 3 of .* is not found"):
        asked(aws, "describe_dashboard", DashboardId="sales", VersionNumber=3)
    asked(aws, "delete_dashboard", DashboardId="sales")
    assert asked(aws, "list_dashboards")["DashboardSummaryList"] == []


def test_an_analysis_comes_back_as_it_was_asked_for_and_goes_in_two_steps(aws: Served) -> None:
    wanted = board(aws)
    asked(aws, "create_analysis", AnalysisId="sales", **wanted)
    told = asked(aws, "describe_analysis_definition", AnalysisId="sales")
    assert (told["ResourceStatus"], told["Definition"]) == ("CREATION_SUCCESSFUL", wanted["Definition"])
    asked(aws, "delete_analysis", AnalysisId="sales")
    assert asked(aws, "describe_analysis", AnalysisId="sales")["Analysis"]["Status"] == "DELETED"
    with pytest.raises(ClientError) as caught:
        asked(aws, "create_analysis", AnalysisId="sales", **wanted)
    assert code(caught) == ("ResourceExistsException", 409)
    asked(aws, "delete_analysis", AnalysisId="sales", ForceDeleteWithoutRecovery=True)
    assert asked(aws, "list_analyses")["AnalysisSummaryList"] == []


@pytest.mark.parametrize("kind", ["analysis", "dashboard"])
def test_visuals_on_columns_that_are_not_there_fail_by_name(aws: Served, kind: str) -> None:
    wanted = board(aws, columns=4)
    member = kind.capitalize()
    asked(aws, f"create_{kind}", **{f"{member}Id": "sales"}, **wanted)
    for _ in range(2):
        found = asked(aws, f"describe_{kind}", **{f"{member}Id": "sales"})[member]
    found = found.get("Version", found)
    assert found["Status"] == "CREATION_FAILED"
    said = {(each["Type"], each["Message"]) for each in found["Errors"]}
    assert said == {
        ("COLUMN_REPLACEMENT_MISSING", f"Required column 'revenue' is missing in data set '{ARN}:dataset/sales'")
    }
    paths = {each["ViolatedEntities"][0]["Path"] for each in found["Errors"]}
    assert paths == {"sheet/sheet/visual/shares", "sheet/sheet/visual/habits"}


def test_a_sum_of_texts_and_a_data_set_that_is_gone_fail(aws: Served) -> None:
    wanted = board(aws)
    wells = wanted["Definition"]["Sheets"][0]["Visuals"][0]["PieChartVisual"]["ChartConfiguration"]["FieldWells"]
    value = wells["PieChartAggregatedFieldWells"]["Values"][0]["NumericalMeasureField"]
    value["Column"]["ColumnName"] = "customer_id"
    asked(aws, "create_analysis", AnalysisId="sums", **wanted)
    told = asked(aws, "describe_analysis_definition", AnalysisId="sums")
    assert [each["Type"] for each in told["Errors"]] == ["COLUMN_TYPE_MISMATCH"]
    asked(aws, "delete_data_set", DataSetId="sales")
    asked(aws, "create_analysis", AnalysisId="gone", **wanted)
    told = asked(aws, "describe_analysis_definition", AnalysisId="gone")
    assert [each["Type"] for each in told["Errors"]] == ["DATA_SET_NOT_FOUND"]


def test_all_of_it_is_there_after_a_restart_but_for_what_ran(tmp_path: Path) -> None:
    with served(tmp_path) as first:
        first.engine.columns = dict(GIVEN)
        source(first)
        done = asked(first, "create_data_set", **tables())["IngestionId"]
        ended(first, done)
        # As a kill leaves it: the record says QUEUED, and nobody runs it.
        first.objects.add(
            "Ingestion",
            "sales/ingestion/cut",
            data_set=f"{ARN}:dataset/sales",
            IngestionId="cut",
            IngestionStatus="QUEUED",
            RequestSource="MANUAL",
            RequestType="FULL_REFRESH",
        )
    with served(tmp_path) as again:
        assert asked(again, "describe_data_source", DataSourceId="lake")["DataSource"]["Name"] == "lake"
        assert ended(again, done)["IngestionStatus"] == "COMPLETED"
        assert ended(again, "cut")["ErrorInfo"]["Type"] == "INTERNAL_SERVICE_ERROR"


def test_lists_come_in_pages(aws: Served) -> None:
    source(aws)
    for number in range(3):
        asked(aws, "create_data_set", **{**tables(), "DataSetId": f"sales-{number}", "ImportMode": "DIRECT_QUERY"})
    pages = list(
        aws.client().get_paginator("list_data_sets").paginate(AwsAccountId=ACCOUNT, PaginationConfig={"PageSize": 2})
    )
    assert [len(page["DataSetSummaries"]) for page in pages] == [2, 1]
    with pytest.raises(ClientError) as caught:
        asked(aws, "list_data_sets", NextToken="later")
    assert code(caught)[0] == "InvalidNextTokenException"


def test_what_is_wrong_or_not_offered_is_said(aws: Served) -> None:
    with pytest.raises(ClientError) as caught:
        aws.client().describe_data_set(AwsAccountId="210987654321", DataSetId="sales")
    assert code(caught) == ("AccessDeniedException", 401)
    with pytest.raises(ClientError, match="not offered by the local AWS endpoint"):
        asked(aws, "list_themes")
    with pytest.raises(ClientError, match=r"of the type ATHENA"):
        asked(aws, "create_data_source", DataSourceId="lake", Name="lake", Type="REDSHIFT")
    with pytest.raises(ClientError, match="by Definition"):
        asked(aws, "create_analysis", AnalysisId="sales", Name="Sales")
