"""The QuickSight resource with boto3 against a fake API: calls, and handling of responses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from cdc_lake_tests.aws_api.quicksight.in_memory import OWNER, REGION, SESSION, Served, served
from cdc_lake_tests.aws_api.quicksight.objects import ACCOUNT
from cdc_lake_tests.fakes.aws.quicksight_templates import SELECTED, TEMPLATES, edited
from infra.local.aws_api.athena.trino_engine import USER_ERROR, QueryFailed
from infra.local.aws_api.errors import AwsError
from resources.aws.aws_resource import AwsRequestFailed
from resources.errors import AccessRefused, Unreachable, WaitTimedOut
from resources.quicksight.ingestions import IngestionFailed
from resources.quicksight.objects import QuickSightFailed
from resources.quicksight.resource import Put, QuickSight
from resources.quicksight.templates import DashboardTemplates

ID = "cdc-lake-shop-sales"
ARN = f"arn:aws:quicksight:{REGION}:{ACCOUNT}"


@pytest.fixture
def aws() -> Iterator[Served]:
    """A fake API, with an engine that returns two rows of the declared columns."""
    with served() as found:
        found.engine.columns = dict(SELECTED)
        found.engine.rows = [["ALFKI", 1, 2, "3.50", "0"], ["BERGS", 2, 1, "9.00", "0"]]
        yield found


def quicksight(aws: Served, **changes: object) -> QuickSight:
    """Return the resource."""
    resource = QuickSight(
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
    resource._session = SESSION
    return resource.model_copy(update=changes)


def put_all(resource: QuickSight, templates: DashboardTemplates = TEMPLATES) -> list[Put]:
    """Put all objects of a dashboard, in order."""
    source = resource.data_source()
    data_set = resource.data_set(templates, source.arn)
    return [source, data_set, resource.analysis(templates, data_set.arn), resource.dashboard(templates, data_set.arn)]


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
    second_puts = put_all(quicksight(aws))
    assert outcomes(second_puts) == ["unchanged"] * 4
    assert (second_puts[1].ingestion_id, second_puts[3].version) == (None, 1)
    assert aws.changes() == []


def test_a_changed_definition_is_published_as_a_new_version(aws: Served) -> None:
    put_all(quicksight(aws))
    aws.changes()
    other = replace(
        TEMPLATES, definition=edited(TEMPLATES.definition, lambda definition: definition["Sheets"][0]["Visuals"].pop())
    )
    puts = put_all(quicksight(aws), other)
    assert outcomes(puts) == ["unchanged", "unchanged", "updated", "updated"]
    assert puts[3].version == 2
    assert aws.changes() == ["UpdateAnalysis", "UpdateDashboard", "UpdateDashboardPublishedVersion"]
    dashboard = aws.client().describe_dashboard(AwsAccountId=ACCOUNT, DashboardId=ID)["Dashboard"]
    assert (dashboard["Version"]["VersionNumber"], dashboard["Version"]["Status"]) == (2, "CREATION_SUCCESSFUL")
    assert outcomes(put_all(quicksight(aws), other)) == ["unchanged"] * 4


def test_a_version_that_was_not_published_is_created_again(aws: Served) -> None:
    put_all(quicksight(aws))
    other = replace(TEMPLATES, title="Sales, by customer")
    aws.script["UpdateDashboardPublishedVersion"] = [AwsError("ConflictException", "it is being changed", 409)]
    with pytest.raises(AwsRequestFailed, match=r"dashboard/cdc-lake-shop-sales: .*ConflictException.*when it"):
        quicksight(aws).dashboard(other, f"{ARN}:dataset/{ID}")
    published = quicksight(aws).dashboard(other, f"{ARN}:dataset/{ID}")
    assert (published.outcome, published.version) == ("updated", 3)


def test_changed_sql_updates_the_data_set_and_quicksight_starts_an_ingestion(aws: Served) -> None:
    resource = quicksight(aws)
    source = resource.data_source()
    first = resource.data_set(TEMPLATES, source.arn)
    assert first.ingestion_id is not None
    assert resource.refresh(TEMPLATES.id, first.ingestion_id).rows_ingested == 2
    aws.changes()
    put = resource.data_set(replace(TEMPLATES, sql=f"{TEMPLATES.sql} WHERE quantity > 0"), source.arn)
    assert put.outcome == "updated"
    assert resource.refresh(TEMPLATES.id, put.ingestion_id).id == put.ingestion_id
    assert aws.changes() == ["UpdateDataSet"]
    assert "WHERE quantity > 0" in aws.engine.queries[-1]


def test_another_role_updates_the_data_source_and_a_new_owner_gets_permissions(aws: Served) -> None:
    resource = quicksight(aws)
    resource.data_source()
    aws.changes()
    role = quicksight(aws, role_arn="arn:aws:iam::123456789012:role/reader")
    assert role.data_source().outcome == "updated"
    assert role.data_source().outcome == "unchanged"
    assert quicksight(aws, principal=OWNER, role_arn=role.role_arn).data_source().outcome == "unchanged"
    other = quicksight(aws, principal="user/anna", namespace="sales", role_arn=role.role_arn)
    assert other.data_source().outcome == "updated"
    assert aws.changes() == ["UpdateDataSource", "UpdateDataSourcePermissions"]
    assert resource.data_source().outcome == "updated"
    response = aws.client().describe_data_source_permissions(AwsAccountId=ACCOUNT, DataSourceId="cdc-lake-athena")
    owners = {each["Principal"]: each["Actions"] for each in response["Permissions"]}
    assert set(owners) == {OWNER, f"{ARN}:user/sales/anna"}
    assert "quicksight:PassDataSource" in owners[OWNER]


def test_a_refresh_reports_its_rows(aws: Served) -> None:
    resource = quicksight(aws)
    put_all(resource)
    aws.engine.rows.append(["CHOPS", 3, 1, "1.00", "0"])
    published = resource.refresh(TEMPLATES.id)
    assert published.rows_ingested == 3
    assert published.arn == f"{ARN}:dataset/{ID}/ingestion/{published.id}"


def test_dropped_rows_are_a_failure(aws: Served) -> None:
    resource = quicksight(aws)
    put_all(resource)
    assert resource.last_ingestion(TEMPLATES.id) is not None
    aws.ingestions.rows_dropped = 1
    with pytest.raises(IngestionFailed, match="SPICE ingested 1 rows and dropped 1, so sums are too low"):
        resource.refresh(TEMPLATES.id)
    last = resource.last_ingestion(TEMPLATES.id)
    assert last is not None
    assert last.faulty


def test_a_refresh_that_fails_names_data_set_ingestion_and_cause(aws: Served) -> None:
    resource = quicksight(aws)
    put_all(resource)
    aws.engine.failure = QueryFailed(
        "TABLE_NOT_FOUND: line 1:8: Table 'datalake.order_items' does not exist", USER_ERROR
    )
    with pytest.raises(IngestionFailed) as caught:
        resource.refresh(TEMPLATES.id)
    message = str(caught.value)
    assert message.startswith(f"Cannot refresh the data set {ARN}:dataset/{ID}: ingestion ")
    assert "is FAILED: SQL_EXCEPTION: TABLE_NOT_FOUND: line 1:8" in message
    assert message.endswith(
        "Run the data set's SQL in Athena, correct it in the dashboard's YAML, then materialise the dashboard again."
    )
    listed = aws.client().list_ingestions(AwsAccountId=ACCOUNT, DataSetId=ID)["Ingestions"]
    assert listed[0]["IngestionId"] in message


def test_a_refresh_that_takes_too_long_times_out(aws: Served) -> None:
    resource = quicksight(aws, ingestion_seconds=0.05)
    put_all(resource)
    aws.engine.free.clear()
    with pytest.raises(
        WaitTimedOut, match=r"ingestion .* of the data set arn:.*raise the resource's ingestion_seconds"
    ):
        resource.refresh(TEMPLATES.id)


def test_a_data_set_with_direct_query_has_no_ingestion(aws: Served) -> None:
    resource = quicksight(aws, import_mode="DIRECT_QUERY")
    assert resource.data_set(TEMPLATES, resource.data_source().arn).ingestion_id is None
    assert aws.engine.queries == []


def test_a_visual_without_its_column_fails_with_quicksights_reason_and_can_be_repaired(aws: Served) -> None:
    resource = quicksight(aws)
    without_revenue = edited(TEMPLATES.data_set, lambda request: request.pop("LogicalTableMap"))
    data_set = resource.data_set(replace(TEMPLATES, data_set=without_revenue), resource.data_source().arn)
    with pytest.raises(QuickSightFailed) as caught:
        resource.dashboard(TEMPLATES, data_set.arn)
    cause = f"dashboard {ARN}:dashboard/{ID}: its status is CREATION_FAILED (COLUMN_REPLACEMENT_MISSING"
    assert cause in str(caught.value)
    assert "'revenue' is missing" in str(caught.value)
    assert outcomes(put_all(resource)) == ["unchanged", "updated", "created", "updated"]


def test_a_failed_data_source_reports_the_reason_and_is_updated_when_repaired(aws: Served) -> None:
    with pytest.raises(QuickSightFailed, match=r"cdc-lake-athena: its status is CREATION_FAILED .*WorkGroup nobody's"):
        quicksight(aws, workgroup="nobody's").data_source()
    assert quicksight(aws).data_source().outcome == "updated"


def test_a_data_source_of_another_type_is_not_changed(aws: Served) -> None:
    quicksight(aws).data_source()
    aws.objects.get("DataSource", "cdc-lake-athena")["type"] = "REDSHIFT"
    aws.changes()
    with pytest.raises(QuickSightFailed, match=r"datasource/cdc-lake-athena: it has the type REDSHIFT.*Delete it"):
        quicksight(aws).data_source()
    assert aws.changes() == []


def test_a_deleted_analysis_that_can_be_restored_is_reported(aws: Served) -> None:
    resource = quicksight(aws)
    puts = put_all(resource)
    aws.objects.get("Analysis", ID)["versions"][0]["status"] = "DELETED"
    with pytest.raises(QuickSightFailed, match=rf"analysis/{ID}: it was deleted.*restore-analysis --analysis-id {ID}"):
        resource.analysis(TEMPLATES, puts[1].arn)
    aws.objects.get("Analysis", ID)["versions"][0]["status"] = "CREATION_SUCCESSFUL"
    assert resource.analysis(TEMPLATES, puts[1].arn).outcome == "unchanged"


def test_deletion_removes_all_objects_and_they_can_be_created_again(aws: Served) -> None:
    resource = quicksight(aws)
    put_all(resource)
    aws.changes()
    removed = [f"{kind} {ARN}:{kind.replace(' ', '')}/{ID}" for kind in ("dashboard", "analysis", "data set")]
    assert list(resource.delete(TEMPLATES.id)) == removed
    assert list(resource.delete_data_source()) == [f"data source {ARN}:datasource/cdc-lake-athena"]
    assert aws.changes() == ["DeleteDashboard", "DeleteAnalysis", "DeleteDataSet", "DeleteDataSource"]
    assert (list(resource.delete(TEMPLATES.id)), list(resource.delete_data_source())) == ([], [])
    assert outcomes(put_all(resource)) == ["created"] * 4


def test_an_interrupted_deletion_can_be_continued(aws: Served) -> None:
    resource = quicksight(aws)
    put_all(resource)
    aws.script["DeleteDataSet"] = [AwsError("AccessDeniedException", "no quicksight:DeleteDataSet", 401)]
    with pytest.raises(AccessRefused, match=rf"delete_data_set for the data set {ARN}:dataset/{ID}:.*Allow the"):
        list(resource.delete(TEMPLATES.id))
    assert [each.partition(" arn")[0] for each in resource.delete(TEMPLATES.id)] == ["data set"]


def test_a_deleted_analysis_is_deleted_without_recovery(aws: Served) -> None:
    resource = quicksight(aws)
    put_all(resource)
    aws.objects.get("Analysis", ID)["versions"][0]["status"] = "DELETED"
    assert f"analysis {ARN}:analysis/{ID}" in list(resource.delete(TEMPLATES.id))
    assert outcomes(put_all(resource))[2] == "created"


def test_the_data_source_is_kept_while_another_data_set_may_read_from_it(aws: Served) -> None:
    resource = quicksight(aws)
    put_all(resource)
    other = replace(TEMPLATES, id="other-sales")
    put_all(resource, other)
    list(resource.delete(TEMPLATES.id))
    assert list(resource.delete_data_source()) == []
    assert outcomes(put_all(resource, other)) == ["unchanged"] * 4
    list(resource.delete(other.id))
    assert len(list(resource.delete_data_source())) == 1


def test_throttled_calls_are_retried(aws: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    aws.script["CreateDataSource"] = [AwsError("ThrottlingException", "Rate exceeded", 429)] * 2
    assert quicksight(aws, attempts=3).data_source().outcome == "created"


@pytest.mark.parametrize(
    ("code", "status", "kind", "advice"),
    [
        ("ThrottlingException", 429, AwsRequestFailed, "raise the resource's `attempts`"),
        ("AccessDeniedException", 401, AccessRefused, "Allow the caller this action"),
        ("ExpiredTokenException", 403, AccessRefused, "The credentials have expired. Get new ones"),
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
    message = str(caught.value)
    assert message.startswith(
        f"Cannot call QuickSight's create_data_source for the data source {ARN}:datasource/cdc-lake-athena: "
    )
    assert f"{code}: said AWS" in message
    assert advice in message


def test_an_unreachable_endpoint_is_reported() -> None:
    resource = QuickSight(
        endpoint_url="http://127.0.0.1:9",
        access_key="key",
        secret_key="secret",
        attempts=1,
        account_id=ACCOUNT,
        principal=OWNER,
        hint="Run `cdc-lake up`.",
    )
    with pytest.raises(Unreachable, match=r"data source arn:.*does not answer.*Run `cdc-lake up`"):
        resource.data_source()
