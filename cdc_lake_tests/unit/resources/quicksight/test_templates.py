"""Templates: requests as QuickSight's service model allows them, and errors that name file and field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import botocore.session
import pytest

from cdc_lake_tests.fakes.aws.quicksight_templates import TEMPLATES, edited
from resources.quicksight.objects import ANALYSIS, DASHBOARD, DATA_SET, DATA_SOURCE
from resources.quicksight.templates import check_templates, request_errors

MODEL = botocore.session.get_session().get_service_model("quicksight")
ARN = "arn:aws:quicksight:us-east-1:123456789012:dataset/example"


def test_northwinds_requests_match_the_service_model() -> None:
    TEMPLATES.check_model(MODEL)
    analysis = {"AnalysisId": "example", "Name": "Sales", "Definition": TEMPLATES.definition_of(ARN, "sheet")}
    assert request_errors(MODEL, "CreateAnalysis", {"AwsAccountId": "123456789012", **analysis}) == []


def test_placeholders_are_filled() -> None:
    [table] = TEMPLATES.data_set_request(ARN)["PhysicalTableMap"].values()
    assert table["CustomSql"]["DataSourceArn"] == ARN
    assert "FROM datalake.order_items" in table["CustomSql"]["SqlQuery"]
    definition = TEMPLATES.definition_of(ARN, "sheet")
    assert definition["DataSetIdentifierDeclarations"] == [{"Identifier": "rows", "DataSetArn": ARN}]
    assert (definition["Sheets"][0]["SheetId"], definition["Sheets"][0]["Name"]) == ("sheet", "Sales")


Edit = Callable[[dict[str, Any]], object]


def _sql(data_set: dict[str, Any]) -> dict[str, Any]:
    [table] = data_set["PhysicalTableMap"].values()
    custom_sql: dict[str, Any] = table["CustomSql"]
    return custom_sql


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (lambda template: _sql(template).pop("Columns"), "PhysicalTableMap has no table with CustomSql and Columns"),
        (
            lambda template: template.update(Name="{{name}}"),
            "Name: unknown placeholder name; allowed: data_source_arn, sql, title",
        ),
        (
            lambda template: _sql(template).update(SqlQuery="SELECT 1"),
            "no field contains the placeholder sql, which is required",
        ),
    ],
)
def test_an_invalid_data_set_template_is_rejected_when_it_is_loaded(edit: Edit, expected: str) -> None:
    with pytest.raises(ValueError, match=f"^quicksight/data_set.json: {expected}$"):
        check_templates(edited(TEMPLATES.data_set, edit), TEMPLATES.definition)


def _pie(definition: dict[str, Any]) -> dict[str, Any]:
    pie: dict[str, Any] = definition["Sheets"][0]["Visuals"][0]["PieChartVisual"]
    return pie


def _category(definition: dict[str, Any]) -> dict[str, Any]:
    wells = _pie(definition)["ChartConfiguration"]["FieldWells"]["PieChartAggregatedFieldWells"]
    column: dict[str, Any] = wells["Category"][0]["CategoricalDimensionField"]["Column"]
    return column


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (
            lambda template: template["Sheets"][0].update(SheetId="sheet"),
            "no field contains the placeholder sheet_id, which is required",
        ),
        (
            lambda template: _category(template).update(ColumnName="name"),
            r".*\.Column\.ColumnName: .* has no column name",
        ),
        (
            lambda template: _category(template).update(DataSetIdentifier="lines"),
            r".*\.DataSetIdentifier: DataSetIdentifierDeclarations has no data set lines",
        ),
    ],
)
def test_an_invalid_definition_template_is_rejected_when_it_is_loaded(edit: Edit, expected: str) -> None:
    with pytest.raises(ValueError, match=f"^quicksight/definition.json: {expected}$"):
        check_templates(TEMPLATES.data_set, edited(TEMPLATES.definition, edit))


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (lambda template: _pie(template).pop("VisualId"), 'PieChartVisual: "VisualId"'),
        (lambda template: _pie(template).update(Colour="red"), "Unknown parameter in Definition.Sheets[0]"),
        (lambda template: _pie(template).update(VisualId=1), "PieChartVisual.VisualId"),
        (lambda template: _pie(template).update(VisualId="!"), "PieChartVisual.VisualId: '!' does not match"),
        (lambda template: _pie(template).update(VisualId="a" * 513), "PieChartVisual.VisualId: 'aaa"),
        (
            lambda template: _pie(template)["Title"].update(Visibility="SHOWN"),
            "Visibility: 'SHOWN' is not allowed; allowed: HIDDEN",
        ),
    ],
)
def test_violations_of_the_service_model_are_named(edit: Edit, expected: str) -> None:
    invalid = replace(TEMPLATES, definition=edited(TEMPLATES.definition, edit))
    with pytest.raises(ValueError, match=r"^quicksight/definition\.json is not valid: ") as error:
        invalid.check_model(MODEL)
    assert expected in str(error.value)


def test_owner_actions_are_service_operations_except_passing_and_querying() -> None:
    for kind in (DATA_SOURCE, DATA_SET, ANALYSIS, DASHBOARD):
        unknown = {action.partition(":")[2] for action in kind.actions} - set(MODEL.operation_names)
        assert unknown <= {"PassDataSource", "PassDataSet", "QueryAnalysis", "QueryDashboard"}
        assert len(kind.actions) == len(set(kind.actions)) <= 20
    assert (DATA_SOURCE.words, DATA_SOURCE.method, DATA_SOURCE.path) == ("data source", "data_source", "datasource")
