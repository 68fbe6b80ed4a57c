"""What QuickSight is asked for, held against the service's model: lengths, patterns and names that boto3 lets pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape
from botocore.validate import ParamValidator

import cdc_lake
from cdc_lake.dashboard import load_dashboard
from cdc_lake.dashboard.quicksight import board
from cdc_lake_tests.fakes.boards import BOARD
from resources.quicksight_data import tables
from resources.quicksight_definition import definition
from resources.quicksight_kinds import ANALYSIS, DASHBOARD, DATA_SET, DATA_SOURCE
from resources.quicksight_visuals import Board

MODEL = botocore.session.get_session().get_service_model("quicksight")
ARN = "arn:aws:quicksight:us-east-1:123456789012"
NORTHWIND = board(
    load_dashboard(Path(cdc_lake.__file__).parent / "defs" / "northwind" / "customers.yaml"),
    "northwind-customers",
)


def objections(shape: Shape, value: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - a part of a request
    """What of a value AWS would refuse, by the model."""
    limits = shape.metadata
    if isinstance(shape, StructureShape):
        for name, part in value.items():
            yield from objections(shape.members[name], part, f"{path}.{name}")
        return
    size = len(value) if isinstance(value, str | list | dict) else value
    if ("min" in limits and size < limits["min"]) or ("max" in limits and size > limits["max"]):
        yield f"{path}: {value!r} is not within {limits}"
    if isinstance(shape, StringShape):
        if shape.enum and value not in shape.enum:
            yield f"{path}: {value!r} is none of {shape.enum}"
        if "pattern" in limits and not re.search(limits["pattern"], value):
            yield f"{path}: {value!r} does not match {limits['pattern']}"
    parts = list(enumerate(value)) if isinstance(shape, ListShape) else []
    parts += list(value.items()) if isinstance(shape, MapShape) else []
    for name, part in parts:
        inner = shape.member if isinstance(shape, ListShape) else shape.value  # type: ignore[attr-defined]
        yield from objections(inner, part, f"{path}[{name}]")


def refused(operation: str, request: dict[str, Any]) -> list[str]:
    """All that AWS's model has against a request."""
    shape = MODEL.operation_model(operation).input_shape
    assert shape is not None
    report = ParamValidator().validate(request, shape)
    assert not report.has_errors(), report.generate_report()
    return list(objections(shape, request, operation))


@pytest.mark.parametrize("wanted", [BOARD, NORTHWIND])
def test_requests_are_as_the_model_says(wanted: Board) -> None:
    told = {"AwsAccountId": "123456789012", "Name": wanted.title}
    drawn = {**told, "Definition": definition(wanted, f"{ARN}:dataset/x", "cdc-lake-sheet")}
    assert refused("CreateAnalysis", {**drawn, "AnalysisId": f"cdc-lake-{wanted.id}"}) == []
    assert refused("CreateDashboard", {**drawn, "DashboardId": f"cdc-lake-{wanted.id}"}) == []
    read = tables(wanted.rows, f"{ARN}:datasource/x")
    assert refused("CreateDataSet", {**told, "DataSetId": "cdc-lake-x", "ImportMode": "SPICE", **read}) == []


def test_the_model_would_object() -> None:
    odd = {"AwsAccountId": "x" * 12, "DataSetId": "x", "Name": "n" * 129, "ImportMode": "FAST", "PhysicalTableMap": {}}
    said = [each.partition(":")[0] for each in refused("CreateDataSet", odd)]
    assert said == ["CreateDataSet.AwsAccountId", "CreateDataSet.Name", "CreateDataSet.ImportMode"]


def test_an_owner_s_actions_are_operations_of_the_service_but_for_passing_and_querying() -> None:
    for kind in (DATA_SOURCE, DATA_SET, ANALYSIS, DASHBOARD):
        unknown = {each.partition(":")[2] for each in kind.actions} - set(MODEL.operation_names)
        assert unknown <= {"PassDataSource", "PassDataSet", "QueryAnalysis", "QueryDashboard"}
        assert len(kind.actions) == len(set(kind.actions)) <= 20
    assert (DATA_SOURCE.words, DATA_SOURCE.method, DATA_SOURCE.path) == ("data source", "data_source", "datasource")


def test_each_visual_has_its_place_below_the_one_before() -> None:
    (sheet,) = definition(NORTHWIND, "arn", "sheet")["Sheets"]
    elements = sheet["Layouts"][0]["Configuration"]["GridLayout"]["Elements"]
    assert [each["ElementId"] for each in elements] == ["revenue_by_customer", "quantity_and_revenue"]
    assert elements[1]["RowIndex"] >= elements[0]["RowIndex"] + elements[0]["RowSpan"]
    pie, scatter = sheet["Visuals"]
    wells = scatter["ScatterPlotVisual"]["ChartConfiguration"]["FieldWells"]
    size = wells["ScatterPlotCategoricallyAggregatedFieldWells"]["Size"][0]["NumericalMeasureField"]
    assert size["AggregationFunction"] == {"SimpleNumericalAggregation": "DISTINCT_COUNT"}
    assert size["Column"]["ColumnName"] == "order_id"
    assert pie["PieChartVisual"]["ChartConfiguration"]["SortConfiguration"]["CategoryItemsLimit"]["ItemsLimit"] == 20
