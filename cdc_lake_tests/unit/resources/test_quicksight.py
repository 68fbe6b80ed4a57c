"""The resource against QuickSight's local API, over boto3: what it calls, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cdc_lake_tests.aws_api.quicksight import ingestions
from cdc_lake_tests.aws_api.quicksight.objects import ACCOUNT
from cdc_lake_tests.fakes.boards import BOARD, GIVEN, PIE, ROWS
from cdc_lake_tests.fakes.quicksight import OWNER, REGION, SESSION, Served, served
from infra.local.aws_api.athena.trino_engine import USER_ERROR, QueryFailed
from infra.local.aws_api.errors import AwsError
from resources.aws import AwsRequestFailed
from resources.errors import AccessRefused, Unreachable, WaitTimedOut
from resources.quicksight import Put, QuickSight
from resources.quicksight_calls import QuickSightFailed
from resources.quicksight_ingestions import IngestionFailed
from resources.quicksight_visuals import Board, Column

ID = "cdc-lake-shop-sales"
ARN = f"arn:aws:quicksight:{REGION}:{ACCOUNT}"


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Served]:
    """The API, with an engine that gives what the board declares."""
    with served(tmp_path) as found:
        found.engine.columns = dict(GIVEN)
        found.engine.rows = [["ALFKI", 1, 2, "3.50"], ["BERGS", 2, 1, "9.00"]]
        yield found


def quicksight(aws: Served, **changes: object) -> QuickSight:
    """The resource."""
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


def put_all(one: QuickSight, board: Board = BOARD) -> list[Put]:
    """Put everything of a board, in order."""
    source = one.data_source()
    data_set = one.data_set(board.id, board.title, board.rows, source.arn)
    return [source, data_set, one.analysis(board, data_set.arn), one.dashboard(board, data_set.arn)]


def outcomes(puts: list[Put]) -> list[str]:
    return [each.outcome for each in puts]


def test_all_is_made_once_and_without_a_difference_nothing_is_changed(aws: Served) -> None:
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


def test_other_visuals_are_a_new_version_that_readers_see(aws: Served) -> None:
    put_all(quicksight(aws))
    aws.changes()
    other = replace(BOARD, visuals=(replace(PIE, slices=5),))
    puts = put_all(quicksight(aws), other)
    assert outcomes(puts) == ["unchanged", "unchanged", "updated", "updated"]
    assert puts[3].version == 2
    assert aws.changes() == ["UpdateAnalysis", "UpdateDashboard", "UpdateDashboardPublishedVersion"]
    seen = aws.client().describe_dashboard(AwsAccountId=ACCOUNT, DashboardId=ID)["Dashboard"]
    assert (seen["Version"]["VersionNumber"], seen["Version"]["Status"]) == (2, "CREATION_SUCCESSFUL")
    assert outcomes(put_all(quicksight(aws), other)) == ["unchanged"] * 4


def test_a_version_that_was_never_published_is_made_again(aws: Served) -> None:
    put_all(quicksight(aws))
    other = replace(BOARD, title="Sales, by customer")
    aws.script["UpdateDashboardPublishedVersion"] = [AwsError("ConflictException", "it is being changed", 409)]
    with pytest.raises(AwsRequestFailed, match=r"dashboard/cdc-lake-shop-sales .*ConflictException.*again when that"):
        quicksight(aws).dashboard(other, f"{ARN}:dataset/{ID}")
    done = quicksight(aws).dashboard(other, f"{ARN}:dataset/{ID}")
    assert (done.outcome, done.version) == ("updated", 3)


def test_other_sql_updates_the_data_set_which_quicksight_reads_by_itself(aws: Served) -> None:
    one = quicksight(aws)
    source = one.data_source()
    first = one.data_set(BOARD.id, BOARD.title, ROWS, source.arn)
    assert first.ingestion_id is not None
    assert one.refresh(BOARD.id, first.ingestion_id).rows_ingested == 2
    aws.changes()
    put = one.data_set(BOARD.id, BOARD.title, replace(ROWS, sql=f"{ROWS.sql} WHERE quantity > 0"), source.arn)
    assert put.outcome == "updated"
    assert one.refresh(BOARD.id, put.ingestion_id).id == put.ingestion_id
    assert aws.changes() == ["UpdateDataSet"]
    assert "WHERE quantity > 0" in aws.engine.asked[-1]


def test_another_workgroup_updates_the_data_source_and_a_new_owner_is_let_in(aws: Served) -> None:
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
    told = aws.client().describe_data_source_permissions(AwsAccountId=ACCOUNT, DataSourceId="cdc-lake-athena")
    owners = {each["Principal"]: each["Actions"] for each in told["Permissions"]}
    assert set(owners) == {OWNER, f"{ARN}:user/sales/anna"}
    assert "quicksight:PassDataSource" in owners[OWNER]


def test_a_refresh_reports_its_rows(aws: Served) -> None:
    one = quicksight(aws)
    put_all(one)
    aws.engine.rows.append(["CHOPS", 3, 1, "1.00"])
    done = one.refresh(BOARD.id)
    assert done.rows_ingested == 3
    assert done.arn == f"{ARN}:dataset/{ID}/ingestion/{done.id}"


def test_rows_that_spice_dropped_are_a_failure(aws: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def complete(record: dict[str, object], rows: int) -> None:
        told = {"RowsIngested": rows - 1, "RowsDropped": 1, "TotalRowsInDataset": rows}
        record.update(IngestionStatus="COMPLETED", RowInfo=told)

    one = quicksight(aws)
    put_all(one)
    assert one.last_ingestion(BOARD.id) is not None
    monkeypatch.setattr(ingestions, "_complete", complete)
    with pytest.raises(IngestionFailed, match="SPICE took 1 rows and dropped 1, so that sums are too low"):
        one.refresh(BOARD.id)
    last = one.last_ingestion(BOARD.id)
    assert last is not None
    assert last.faulty


def test_a_refresh_that_fails_names_data_set_ingestion_and_cause(aws: Served) -> None:
    one = quicksight(aws)
    put_all(one)
    aws.engine.failure = QueryFailed(
        "TABLE_NOT_FOUND: line 1:8: Table 'datalake.order_items' does not exist", USER_ERROR
    )
    with pytest.raises(IngestionFailed) as caught:
        one.refresh(BOARD.id)
    said = str(caught.value)
    assert f"of the data set {ARN}:dataset/{ID} is FAILED: SQL_EXCEPTION: TABLE_NOT_FOUND: line 1:8" in said
    assert said.endswith("Run the dataset's SQL in Athena, correct it in the dashboard's YAML, then publish again.")
    listed = aws.client().list_ingestions(AwsAccountId=ACCOUNT, DataSetId=ID)["Ingestions"]
    assert listed[0]["IngestionId"] in said


def test_a_refresh_that_takes_too_long_is_named(aws: Served) -> None:
    one = quicksight(aws, ingestion_seconds=0.05)
    put_all(one)
    aws.engine.free.clear()
    with pytest.raises(
        WaitTimedOut, match=r"ingestion .* of the data set arn:.*raise the resource's ingestion_seconds"
    ):
        one.refresh(BOARD.id)


def test_directly_queried_data_sets_are_not_ingested(aws: Served) -> None:
    one = quicksight(aws, import_mode="DIRECT_QUERY")
    assert one.data_set(BOARD.id, BOARD.title, ROWS, one.data_source().arn).ingestion_id is None
    assert aws.engine.asked == []


def test_a_visual_without_its_column_fails_with_quicksight_s_reason_and_can_be_mended(aws: Served) -> None:
    one = quicksight(aws)
    less = replace(ROWS, columns=tuple(each for each in ROWS.columns if each.name != "revenue"))
    data_set = one.data_set(BOARD.id, BOARD.title, less, one.data_source().arn)
    with pytest.raises(QuickSightFailed) as caught:
        one.dashboard(BOARD, data_set.arn)
    assert f"dashboard {ARN}:dashboard/{ID} is CREATION_FAILED: COLUMN_REPLACEMENT_MISSING" in str(caught.value)
    assert "'revenue' is missing" in str(caught.value)
    assert outcomes(put_all(one)) == ["unchanged", "updated", "created", "updated"]


def test_a_data_source_that_can_t_be_made_says_why_and_is_updated_when_mended(aws: Served) -> None:
    with pytest.raises(QuickSightFailed, match=r"datasource/cdc-lake-athena is CREATION_FAILED: .*WorkGroup nobody's"):
        quicksight(aws, workgroup="nobody's").data_source()
    assert quicksight(aws).data_source().outcome == "updated"


def test_one_of_another_type_is_left_alone(aws: Served) -> None:
    quicksight(aws).data_source()
    aws.objects.get("DataSource", "cdc-lake-athena")["type"] = "REDSHIFT"
    aws.changes()
    with pytest.raises(QuickSightFailed, match=r"datasource/cdc-lake-athena exists, with the type REDSHIFT.*Delete it"):
        quicksight(aws).data_source()
    assert aws.changes() == []


def test_an_analysis_in_the_bin_is_not_made_again(aws: Served) -> None:
    one = quicksight(aws)
    puts = put_all(one)
    aws.client().delete_analysis(AwsAccountId=ACCOUNT, AnalysisId=ID)
    with pytest.raises(QuickSightFailed, match=rf"analysis/{ID} was deleted.*restore-analysis --analysis-id {ID}"):
        one.analysis(BOARD, puts[1].arn)
    aws.client().restore_analysis(AwsAccountId=ACCOUNT, AnalysisId=ID)
    assert one.analysis(BOARD, puts[1].arn).outcome == "unchanged"


def test_what_is_deleted_leaves_nothing_and_can_be_made_again(aws: Served) -> None:
    one = quicksight(aws)
    put_all(one)
    aws.changes()
    removed = [f"{kind} {ARN}:{kind.replace(' ', '')}/{ID}" for kind in ("dashboard", "analysis", "data set")]
    assert list(one.delete(BOARD.id)) == removed
    assert list(one.delete_data_source()) == [f"data source {ARN}:datasource/cdc-lake-athena"]
    assert aws.changes() == ["DeleteDashboard", "DeleteAnalysis", "DeleteDataSet", "DeleteDataSource"]
    assert (list(one.delete(BOARD.id)), list(one.delete_data_source())) == ([], [])
    assert outcomes(put_all(one)) == ["created"] * 4


def test_a_deletion_that_was_cut_off_goes_on(aws: Served) -> None:
    one = quicksight(aws)
    put_all(one)
    aws.script["DeleteDataSet"] = [AwsError("AccessDeniedException", "no quicksight:DeleteDataSet", 401)]
    with pytest.raises(AccessRefused, match=rf"delete_data_set for the data set {ARN}:dataset/{ID} failed.*Allow the"):
        list(one.delete(BOARD.id))
    assert [each.partition(" arn")[0] for each in one.delete(BOARD.id)] == ["data set"]


def test_an_analysis_in_the_bin_is_deleted_for_good(aws: Served) -> None:
    one = quicksight(aws)
    put_all(one)
    aws.client().delete_analysis(AwsAccountId=ACCOUNT, AnalysisId=ID)
    assert f"analysis {ARN}:analysis/{ID}" in list(one.delete(BOARD.id))
    assert outcomes(put_all(one))[2] == "created"


def test_a_data_source_stays_while_another_dashboard_may_read_from_it(aws: Served) -> None:
    one = quicksight(aws)
    put_all(one)
    other = replace(BOARD, id="stall-sales")
    put_all(one, other)
    list(one.delete(BOARD.id))
    assert list(one.delete_data_source()) == []
    assert outcomes(put_all(one, other)) == ["unchanged"] * 4
    list(one.delete(other.id))
    assert len(list(one.delete_data_source())) == 1


def test_throttling_is_tried_again(aws: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    aws.script["CreateDataSource"] = [AwsError("ThrottlingException", "Rate exceeded", 429)] * 2
    assert quicksight(aws, attempts=3).data_source().outcome == "created"


@pytest.mark.parametrize(
    ("code", "status", "kind", "advice"),
    [
        ("ThrottlingException", 429, AwsRequestFailed, "raise the resource's `attempts`"),
        ("AccessDeniedException", 401, AccessRefused, "Allow the caller that action on it"),
        ("ExpiredTokenException", 403, AccessRefused, "The credentials have expired: get new ones"),
        ("LimitExceededException", 409, AwsRequestFailed, "32 refreshes in 24 hours"),
        ("ResourceExistsException", 409, AwsRequestFailed, "Another run has just made it"),
    ],
)
def test_what_aws_refuses_names_call_object_and_remedy(
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


def test_nobody_at_the_address() -> None:
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


def test_a_visual_that_names_no_column_is_refused_before_any_call(aws: Served) -> None:
    odd = replace(BOARD, rows=replace(ROWS, columns=(Column("customer_id", "STRING"),)))
    with pytest.raises(ValueError, match="visual shares: there is no column revenue; there are customer_id"):
        quicksight(aws).dashboard(odd, f"{ARN}:dataset/{ID}")
    assert aws.calls == []


def test_a_text_can_be_counted_and_not_added_up(aws: Served) -> None:
    by_name = replace(PIE, value=replace(PIE.value, column="customer_id", aggregate="DISTINCT_COUNT"))
    one = quicksight(aws)
    data_set = one.data_set(BOARD.id, BOARD.title, ROWS, one.data_source().arn)
    assert one.dashboard(replace(BOARD, visuals=(by_name,)), data_set.arn).outcome == "created"
    summed = replace(by_name, value=replace(by_name.value, aggregate="SUM"))
    with pytest.raises(ValueError, match="SUM takes a number, and customer_id is STRING"):
        one.dashboard(replace(BOARD, visuals=(summed,)), data_set.arn)
