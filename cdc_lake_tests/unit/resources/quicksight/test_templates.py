"""Templates: requests as QuickSight's service model allows them, and errors that name file and field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import botocore.session
import pytest

from cdc_lake_tests.fakes.quicksight_templates import TEMPLATES, edited
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
        (lambda one: _sql(one).pop("Columns"), "PhysicalTableMap has no table with CustomSql and Columns"),
        (
            lambda one: one.update(Name="{{name}}"),
            "Name: unknown placeholder name; allowed: data_source_arn, sql, title",
        ),
        (
            lambda one: _sql(one).update(SqlQuery="SELECT 1"),
            "no field contains the placeholder sql, which is required",
        ),
    ],
)
def test_an_invalid_data_set_template_is_refused_when_it_is_loaded(edit: Edit, expected: str) -> None:
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
            lambda one: one["Sheets"][0].update(SheetId="sheet"),
            "no field contains the placeholder sheet_id, which is required",
        ),
        (lambda one: _category(one).update(ColumnName="name"), r".*\.Column\.ColumnName: .* has no column name"),
        (
            lambda one: _category(one).update(DataSetIdentifier="lines"),
            r".*\.DataSetIdentifier: DataSetIdentifierDeclarations has no data set lines",
        ),
    ],
)
def test_an_invalid_definition_template_is_refused_when_it_is_loaded(edit: Edit, expected: str) -> None:
    with pytest.raises(ValueError, match=f"^quicksight/definition.json: {expected}$"):
        check_templates(TEMPLATES.data_set, edited(TEMPLATES.definition, edit))


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (lambda one: _pie(one).pop("VisualId"), 'PieChartVisual: "VisualId"'),
        (lambda one: _pie(one).update(Colour="red"), "Unknown parameter in Definition.Sheets[0]"),
        (lambda one: _pie(one).update(VisualId=1), "PieChartVisual.VisualId"),
        (lambda one: _pie(one).update(VisualId="!"), "PieChartVisual.VisualId: '!' does not match"),
        (lambda one: _pie(one).update(VisualId="a" * 513), "PieChartVisual.VisualId: 'aaa"),
        (
            lambda one: _pie(one)["Title"].update(Visibility="SHOWN"),
            "Visibility: 'SHOWN' is not allowed; allowed: HIDDEN",
        ),
    ],
)
def test_what_the_service_model_does_not_allow_is_named(edit: Edit, expected: str) -> None:
    wrong = replace(TEMPLATES, definition=edited(TEMPLATES.definition, edit))
    with pytest.raises(ValueError, match=r"^quicksight/definition\.json is not valid: ") as error:
        wrong.check_model(MODEL)
    assert expected in str(error.value)


def test_an_owners_actions_are_operations_of_the_service_except_passing_and_querying() -> None:
    for kind in (DATA_SOURCE, DATA_SET, ANALYSIS, DASHBOARD):
        unknown = {action.partition(":")[2] for action in kind.actions} - set(MODEL.operation_names)
        assert unknown <= {"PassDataSource", "PassDataSet", "QueryAnalysis", "QueryDashboard"}
        assert len(kind.actions) == len(set(kind.actions)) <= 20
    assert (DATA_SOURCE.words, DATA_SOURCE.method, DATA_SOURCE.path) == ("data source", "data_source", "datasource")
