"""The resource, with boto3, against the tests' QuickSight API: its calls, and how it handles the responses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from cdc_lake_tests.aws_api.quicksight.in_memory import OWNER, REGION, SESSION, Served, served
from cdc_lake_tests.aws_api.quicksight.objects import ACCOUNT
from cdc_lake_tests.fakes.quicksight_templates import SELECTED, TEMPLATES, edited
from infra.local.aws_api.athena.trino_engine import USER_ERROR, QueryFailed
from infra.local.aws_api.errors import AwsError
from resources.aws.client import AwsRequestFailed
from resources.errors import AccessRefused, Unreachable, WaitTimedOut
from resources.quicksight.ingestions import IngestionFailed
from resources.quicksight.objects import QuickSightFailed
from resources.quicksight.resource import Put, QuickSight
from resources.quicksight.templates import DashboardTemplates

ID = "cdc-lake-shop-sales"
ARN = f"arn:aws:quicksight:{REGION}:{ACCOUNT}"


@pytest.fixture
def aws() -> Iterator[Served]:
    """The API, with an engine that returns two rows of the declared columns."""
    with served() as found:
        found.engine.columns = dict(SELECTED)
        found.engine.rows = [["ALFKI", 1, 2, "3.50", "0"], ["BERGS", 2, 1, "9.00", "0"]]
        yield found


def quicksight(aws: Served, **changes: object) -> QuickSight:
    """Return the resource."""
    made = QuickSight(
        endpoint_url=aws.url,
        access_key="key",
        secret_key="secret",
        attempts=1,
        account_id=ACCOUNT,
        principal="group/analysts",
        poll_seconds=0.01,
        change_seconds=5,
        ingestion_seconds=5,
    )
    made._session = SESSION
    return made.model_copy(update=changes)


def put_all(one: QuickSight, templates: DashboardTemplates = TEMPLATES) -> list[Put]:
    """Put all objects of a dashboard, in order."""
    source = one.data_source()
    data_set = one.data_set(templates, source.arn)
    return [source, data_set, one.analysis(templates, data_set.arn), one.dashboard(templates, data_set.arn)]


def outcomes(puts: list[Put]) -> list[str]:
    return [each.outcome for each in puts]


def test_objects_are_created_once_and_not_changed_without_a_difference(aws: Served) -> None:
    puts = put_all(quicksight(aws))
    assert outcomes(puts) == ["created"] * 4
    assert [each.arn for each in puts] == [
        f"{ARN}:datasource/cdc-lake-athena",
        f"{ARN}:dataset/{ID}",
        f"{ARN}:analysis/{ID}",
        f"{ARN}:dashboard/{ID}",
    ]
    assert aws.changes() == ["CreateDataSource", "CreateDataSet", "CreateAnalysis", "CreateDashboard"]
    again = put_all(quicksight(aws))
    assert outcomes(again) == ["unchanged"] * 4
    assert (again[1].ingestion_id, again[3].version) == (None, 1)
    assert aws.changes() == []


def test_a_changed_definition_is_published_as_a_new_version(aws: Served) -> None:
    put_all(quicksight(aws))
    aws.changes()
    other = replace(TEMPLATES, definition=edited(TEMPLATES.definition, lambda one: one["Sheets"][0]["Visuals"].pop()))
    puts = put_all(quicksight(aws), other)
    assert outcomes(puts) == ["unchanged", "unchanged", "updated", "updated"]
    assert puts[3].version == 2
    assert aws.changes() == ["UpdateAnalysis", "UpdateDashboard", "UpdateDashboardPublishedVersion"]
    seen = aws.client().describe_dashboard(AwsAccountId=ACCOUNT, DashboardId=ID)["Dashboard"]
    assert (seen["Version"]["VersionNumber"], seen["Version"]["Status"]) == (2, "CREATION_SUCCESSFUL")
    assert outcomes(put_all(quicksight(aws), other)) == ["unchanged"] * 4


def test_a_version_that_was_not_published_is_created_again(aws: Served) -> None:
    put_all(quicksight(aws))
    other = replace(TEMPLATES, title="Sales, by customer")
    aws.script["UpdateDashboardPublishedVersion"] = [AwsError("ConflictException", "it is being changed", 409)]
    with pytest.raises(AwsRequestFailed, match=r"dashboard/cdc-lake-shop-sales .*ConflictException.*again when it"):
        quicksight(aws).dashboard(other, f"{ARN}:dataset/{ID}")
    done = quicksight(aws).dashboard(other, f"{ARN}:dataset/{ID}")
    assert (done.outcome, done.version) == ("updated", 3)


def test_changed_sql_updates_the_data_set_and_quicksight_starts_an_ingestion(aws: Served) -> None:
    one = quicksight(aws)
    source = one.data_source()
    first = one.data_set(TEMPLATES, source.arn)
    assert first.ingestion_id is not None
    assert one.refresh(TEMPLATES.id, first.ingestion_id).rows_ingested == 2
    aws.changes()
    put = one.data_set(replace(TEMPLATES, sql=f"{TEMPLATES.sql} WHERE quantity > 0"), source.arn)
    assert put.outcome == "updated"
    assert one.refresh(TEMPLATES.id, put.ingestion_id).id == put.ingestion_id
    assert aws.changes() == ["UpdateDataSet"]
    assert "WHERE quantity > 0" in aws.engine.asked[-1]


def test_another_role_updates_the_data_source_and_a_new_owner_gets_permissions(aws: Served) -> None:
    one = quicksight(aws)
    one.data_source()
    aws.changes()
    role = quicksight(aws, role_arn="arn:aws:iam::123456789012:role/reader")
    assert role.data_source().outcome == "updated"
    assert role.data_source().outcome == "unchanged"
    assert quicksight(aws, principal=OWNER, role_arn=role.role_arn).data_source().outcome == "unchanged"
    other = quicksight(aws, principal="user/anna", namespace="sales", role_arn=role.role_arn)
    assert other.data_source().outcome == "updated"
    assert aws.changes() == ["UpdateDataSource", "UpdateDataSourcePermissions"]
    assert one.data_source().outcome == "updated"
    response = aws.client().describe_data_source_permissions(AwsAccountId=ACCOUNT, DataSourceId="cdc-lake-athena")
    owners = {each["Principal"]: each["Actions"] for each in response["Permissions"]}
    assert set(owners) == {OWNER, f"{ARN}:user/sales/anna"}
    assert "quicksight:PassDataSource" in owners[OWNER]


def test_a_refresh_reports_its_rows(aws: Served) -> None:
    one = quicksight(aws)
    put_all(one)
    aws.engine.rows.append(["CHOPS", 3, 1, "1.00", "0"])
    done = one.refresh(TEMPLATES.id)
    assert done.rows_ingested == 3
    assert done.arn == f"{ARN}:dataset/{ID}/ingestion/{done.id}"


def test_dropped_rows_are_a_failure(aws: Served) -> None:
    one = quicksight(aws)
    put_all(one)
    assert one.last_ingestion(TEMPLATES.id) is not None
    aws.ingestions.rows_dropped = 1
    with pytest.raises(IngestionFailed, match="SPICE ingested 1 rows and dropped 1, so sums are too low"):
        one.refresh(TEMPLATES.id)
    last = one.last_ingestion(TEMPLATES.id)
    assert last is not None
    assert last.faulty


def test_a_refresh_that_fails_names_data_set_ingestion_and_cause(aws: Served) -> None:
    one = quicksight(aws)
    put_all(one)
    aws.engine.failure = QueryFailed(
        "TABLE_NOT_FOUND: line 1:8: Table 'datalake.order_items' does not exist", USER_ERROR
    )
    with pytest.raises(IngestionFailed) as caught:
        one.refresh(TEMPLATES.id)
    said = str(caught.value)
    assert f"of the data set {ARN}:dataset/{ID} is FAILED: SQL_EXCEPTION: TABLE_NOT_FOUND: line 1:8" in said
    assert said.endswith(
        "Run the data set's SQL in Athena, correct it in the dashboard's YAML, then materialise again."
    )
    listed = aws.client().list_ingestions(AwsAccountId=ACCOUNT, DataSetId=ID)["Ingestions"]
    assert listed[0]["IngestionId"] in said


def test_a_refresh_that_takes_too_long_times_out(aws: Served) -> None:
    one = quicksight(aws, ingestion_seconds=0.05)
    put_all(one)
    aws.engine.free.clear()
    with pytest.raises(
        WaitTimedOut, match=r"ingestion .* of the data set arn:.*raise the resource's ingestion_seconds"
    ):
        one.refresh(TEMPLATES.id)


def test_a_data_set_with_direct_query_has_no_ingestion(aws: Served) -> None:
    one = quicksight(aws, import_mode="DIRECT_QUERY")
    assert one.data_set(TEMPLATES, one.data_source().arn).ingestion_id is None
    assert aws.engine.asked == []


def test_a_visual_without_its_column_fails_with_quicksights_reason_and_can_be_repaired(aws: Served) -> None:
    one = quicksight(aws)
    without_revenue = edited(TEMPLATES.data_set, lambda request: request.pop("LogicalTableMap"))
    data_set = one.data_set(replace(TEMPLATES, data_set=without_revenue), one.data_source().arn)
    with pytest.raises(QuickSightFailed) as caught:
        one.dashboard(TEMPLATES, data_set.arn)
    assert f"dashboard {ARN}:dashboard/{ID} is CREATION_FAILED: COLUMN_REPLACEMENT_MISSING" in str(caught.value)
    assert "'revenue' is missing" in str(caught.value)
    assert outcomes(put_all(one)) == ["unchanged", "updated", "created", "updated"]


def test_a_failed_data_source_reports_the_reason_and_is_updated_when_repaired(aws: Served) -> None:
    with pytest.raises(QuickSightFailed, match=r"datasource/cdc-lake-athena is CREATION_FAILED: .*WorkGroup nobody's"):
        quicksight(aws, workgroup="nobody's").data_source()
    assert quicksight(aws).data_source().outcome == "updated"


def test_a_data_source_of_another_type_is_not_changed(aws: Served) -> None:
    quicksight(aws).data_source()
    aws.objects.get("DataSource", "cdc-lake-athena")["type"] = "REDSHIFT"
    aws.changes()
    with pytest.raises(QuickSightFailed, match=r"datasource/cdc-lake-athena exists with the type REDSHIFT.*Delete it"):
        quicksight(aws).data_source()
    assert aws.changes() == []


def test_a_deleted_analysis_that_can_be_restored_is_reported(aws: Served) -> None:
    one = quicksight(aws)
    puts = put_all(one)
    aws.objects.get("Analysis", ID)["versions"][0]["status"] = "DELETED"
    with pytest.raises(QuickSightFailed, match=rf"analysis/{ID} was deleted.*restore-analysis --analysis-id {ID}"):
        one.analysis(TEMPLATES, puts[1].arn)
    aws.objects.get("Analysis", ID)["versions"][0]["status"] = "CREATION_SUCCESSFUL"
    assert one.analysis(TEMPLATES, puts[1].arn).outcome == "unchanged"


def test_deletion_removes_all_objects_and_they_can_be_created_again(aws: Served) -> None:
    one = quicksight(aws)
    put_all(one)
    aws.changes()
    removed = [f"{kind} {ARN}:{kind.replace(' ', '')}/{ID}" for kind in ("dashboard", "analysis", "data set")]
    assert list(one.delete(TEMPLATES.id)) == removed
    assert list(one.delete_data_source()) == [f"data source {ARN}:datasource/cdc-lake-athena"]
    assert aws.changes() == ["DeleteDashboard", "DeleteAnalysis", "DeleteDataSet", "DeleteDataSource"]
    assert (list(one.delete(TEMPLATES.id)), list(one.delete_data_source())) == ([], [])
    assert outcomes(put_all(one)) == ["created"] * 4


def test_an_interrupted_deletion_can_be_continued(aws: Served) -> None:
    one = quicksight(aws)
    put_all(one)
    aws.script["DeleteDataSet"] = [AwsError("AccessDeniedException", "no quicksight:DeleteDataSet", 401)]
    with pytest.raises(AccessRefused, match=rf"delete_data_set for the data set {ARN}:dataset/{ID} failed.*Allow the"):
        list(one.delete(TEMPLATES.id))
    assert [each.partition(" arn")[0] for each in one.delete(TEMPLATES.id)] == ["data set"]


def test_a_deleted_analysis_is_deleted_without_recovery(aws: Served) -> None:
    one = quicksight(aws)
    put_all(one)
    aws.objects.get("Analysis", ID)["versions"][0]["status"] = "DELETED"
    assert f"analysis {ARN}:analysis/{ID}" in list(one.delete(TEMPLATES.id))
    assert outcomes(put_all(one))[2] == "created"


def test_the_data_source_is_kept_while_another_data_set_may_read_from_it(aws: Served) -> None:
    one = quicksight(aws)
    put_all(one)
    other = replace(TEMPLATES, id="stall-sales")
    put_all(one, other)
    list(one.delete(TEMPLATES.id))
    assert list(one.delete_data_source()) == []
    assert outcomes(put_all(one, other)) == ["unchanged"] * 4
    list(one.delete(other.id))
    assert len(list(one.delete_data_source())) == 1


def test_throttled_calls_are_retried(aws: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    aws.script["CreateDataSource"] = [AwsError("ThrottlingException", "Rate exceeded", 429)] * 2
    assert quicksight(aws, attempts=3).data_source().outcome == "created"


@pytest.mark.parametrize(
    ("code", "status", "kind", "advice"),
    [
        ("ThrottlingException", 429, AwsRequestFailed, "raise the resource's `attempts`"),
        ("AccessDeniedException", 401, AccessRefused, "Allow the caller this action"),
        ("ExpiredTokenException", 403, AccessRefused, "The credentials have expired: get new ones"),
        ("LimitExceededException", 409, AwsRequestFailed, "32 times in 24 hours"),
        ("ResourceExistsException", 409, AwsRequestFailed, "Another run has just created it"),
    ],
)
def test_a_refused_call_names_call_object_and_remedy(
    aws: Served, code: str, status: int, kind: type[Exception], advice: str
) -> None:
    aws.script["CreateDataSource"] = [AwsError(code, "said AWS", status)]
    with pytest.raises(kind) as caught:
        quicksight(aws).data_source()
    said = str(caught.value)
    assert said.startswith(
        f"QuickSight's create_data_source for the data source {ARN}:datasource/cdc-lake-athena failed"
    )
    assert f"{code}: said AWS" in said
    assert advice in said


def test_an_unreachable_endpoint_is_reported() -> None:
    one = QuickSight(
        endpoint_url="http://127.0.0.1:9",
        access_key="key",
        secret_key="secret",
        attempts=1,
        account_id=ACCOUNT,
        principal=OWNER,
        hint="Run `cdc-lake up`.",
    )
    with pytest.raises(Unreachable, match=r"data source arn:.*does not answer.*Run `cdc-lake up`"):
        one.data_source()
