"""QuickSight's API: data sources on Athena, datasets of custom SQL, ingestions that run on Trino, and what shows them.

Here: data sources, datasets, ingestions and lists. Not here: analyses and dashboards (quicksight_boards.py),
permissions (quicksight_permissions.py), running SQL (quicksight_ingestions.py), columns (quicksight_data_sets.py).

What differs from QuickSight, since nothing here draws or keeps rows:

- Data sources are Athena's, on the workgroups of the local Athena. Datasets have one custom SQL table and one logical
  table over it, with computed and projected columns; expressions are not evaluated, and computed columns are DECIMAL.
- An ingestion runs the SQL and counts its rows: it compares their types with the declared ones as a whole, where
  QuickSight drops rows whose values don't fit. There are no quotas, no incremental ones and none by schedule.
- Definitions are looked through for datasets, columns and numbers (quicksight_definitions.py); a dashboard in
  DIRECT_QUERY is never queried.
- Users, groups, namespaces, folders, themes and tags are not there: a permission is kept as it is, for any principal
  whose ARN is one of QuickSight's, and refuses nobody. Another account than the local one is refused.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

from cdc_lake_tests.aws_api.quicksight.boards import Boards
from cdc_lake_tests.aws_api.quicksight.data_sets import custom_sql, output_columns
from cdc_lake_tests.aws_api.quicksight.ingestions import Ingestions, described
from cdc_lake_tests.aws_api.quicksight.objects import ACCOUNT, Kind, Objects, Record, invalid
from cdc_lake_tests.aws_api.quicksight.permissions import check_principals, permissions
from cdc_lake_tests.aws_api.rest_protocol import Operation
from infra.local.aws_api.athena.operations import WORKGROUP
from infra.local.aws_api.errors import AwsError

Answer = dict[str, Any]
_PAGE = 100
_TABLES = ("PhysicalTableMap", "LogicalTableMap", "ImportMode")


class QuickSightApi:
    """The offered operations: parameters in, members of the answer out."""

    def __init__(self, objects: Objects, ingestions: Ingestions, workgroups: frozenset[str] | None = None) -> None:
        self._objects, self._ingestions = objects, ingestions
        self._workgroups = workgroups or frozenset({WORKGROUP})
        offered: dict[str, Operation] = {
            "CreateDataSource": self._create_source,
            "DescribeDataSource": self._describe_source,
            "UpdateDataSource": self._update_source,
            "DeleteDataSource": lambda request: self._delete("DataSource", request),
            "ListDataSources": lambda request: self._list(request, "DataSource", "DataSources", _source),
            "CreateDataSet": self._create_set,
            "DescribeDataSet": lambda request: {"DataSet": _set(self._objects.get("DataSet", request["DataSetId"]))},
            "UpdateDataSet": self._update_set,
            "DeleteDataSet": self._delete_set,
            "ListDataSets": lambda request: self._list(request, "DataSet", "DataSetSummaries", _summary),
            "CreateIngestion": self._create_ingestion,
            "DescribeIngestion": self._describe_ingestion,
            "ListIngestions": self._list_ingestions,
            "ListAnalyses": lambda request: self._list(request, "Analysis", "AnalysisSummaryList", _summary),
            "ListDashboards": lambda request: self._list(request, "Dashboard", "DashboardSummaryList", _summary),
            **Boards(objects).operations,
            **permissions(objects),
        }
        self.operations = {name: self._alone(operation) for name, operation in offered.items()}

    def _alone(self, operation: Operation) -> Operation:
        def alone(request: dict[str, Any]) -> Answer:
            if request["AwsAccountId"] != ACCOUNT:
                said = f"Account {request['AwsAccountId']} is not the caller's, which is {ACCOUNT}."
                raise AwsError("AccessDeniedException", said, status=401)
            check_principals(request)
            with self._objects.lock:
                answer = operation(request)
                self._objects.save()
                return {**answer, "RequestId": str(uuid.uuid4())}

        return alone

    def _create_source(self, request: dict[str, Any]) -> Answer:
        made = self._objects.add(
            "DataSource",
            request["DataSourceId"],
            name=request["Name"],
            type=request["Type"],
            parameters=_athena(request),
            permissions=request.get("Permissions", []),
            status="CREATION_IN_PROGRESS",
        )
        return {"Arn": made["arn"], "DataSourceId": made["id"], "CreationStatus": made["status"]}

    def _update_source(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("DataSource", request["DataSourceId"])
        _refuse_busy(found)
        parameters = _athena({**request, "Type": found["type"]})
        found.update(name=request["Name"], parameters=parameters, status="UPDATE_IN_PROGRESS", updated=time.time())
        return {"Arn": found["arn"], "DataSourceId": found["id"], "UpdateStatus": found["status"]}

    def _describe_source(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("DataSource", request["DataSourceId"])
        answer = {"DataSource": _source(found)}
        if found["status"].endswith("_IN_PROGRESS"):
            workgroup = found["parameters"]["AthenaParameters"].get("WorkGroup", WORKGROUP)
            known = workgroup in self._workgroups
            found["why"] = None if known else f"WorkGroup {workgroup} is not found."
            found["status"] = found["status"].replace("IN_PROGRESS", "SUCCESSFUL" if known else "FAILED")
        return answer

    def _create_set(self, request: dict[str, Any]) -> Answer:
        self._check_set(request)
        made = self._objects.add(
            "DataSet",
            request["DataSetId"],
            name=request["Name"],
            permissions=request.get("Permissions", []),
            **{name: request[name] for name in _TABLES if name in request},
        )
        return self._read_anew(made, "INITIAL_INGESTION")

    def _update_set(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("DataSet", request["DataSetId"])
        self._check_set(request)
        found.pop("LogicalTableMap", None)
        found.update({name: request[name] for name in _TABLES if name in request})
        found.update(name=request["Name"], updated=time.time())
        return self._read_anew(found, "EDIT")

    def _check_set(self, request: dict[str, Any]) -> None:
        if request["ImportMode"] not in ("SPICE", "DIRECT_QUERY"):
            raise invalid(f"ImportMode {request['ImportMode']} is none of SPICE, DIRECT_QUERY.")
        source = self._objects.at(custom_sql(request)["DataSourceArn"])
        if source is None or source["kind"] != "DataSource":
            raise invalid(f"The data source {custom_sql(request)['DataSourceArn']} is not found.")
        output_columns(request)

    def _read_anew(self, data_set: Record, request: str) -> Answer:
        """The answer to a change of a dataset; one in SPICE is read by an ingestion of QuickSight's own."""
        answer = {"Arn": data_set["arn"], "DataSetId": data_set["id"]}
        if data_set["ImportMode"] != "SPICE":
            return answer
        begun = self._ingestions.begin(data_set, str(uuid.uuid4()), request)
        return {**answer, "IngestionArn": begun["arn"], "IngestionId": begun["IngestionId"]}

    def _delete_set(self, request: dict[str, Any]) -> Answer:
        for each in self._objects.of("Ingestion"):
            if each["data_set"] == self._objects.arn("DataSet", request["DataSetId"]):
                self._objects.remove(each)
        return self._delete("DataSet", request)

    def _delete(self, kind: Kind, request: dict[str, Any]) -> Answer:
        found = self._objects.get(kind, request[f"{kind}Id"])
        self._objects.remove(found)
        return {"Arn": found["arn"], f"{kind}Id": found["id"]}

    def _create_ingestion(self, request: dict[str, Any]) -> Answer:
        data_set = self._objects.get("DataSet", request["DataSetId"])
        kind = request.get("IngestionType", "FULL_REFRESH")
        if kind != "FULL_REFRESH":
            raise invalid(f"The local QuickSight has no {kind}.")
        made = self._ingestions.begin(data_set, request["IngestionId"], kind)
        return {"Arn": made["arn"], "IngestionId": made["IngestionId"], "IngestionStatus": "INITIALIZED"}

    def _describe_ingestion(self, request: dict[str, Any]) -> Answer:
        self._objects.get("DataSet", request["DataSetId"])
        id_ = f"{request['DataSetId']}/ingestion/{request['IngestionId']}"
        return {"Ingestion": described(self._objects.get("Ingestion", id_))}

    def _list_ingestions(self, request: dict[str, Any]) -> Answer:
        arn = self._objects.get("DataSet", request["DataSetId"])["arn"]
        newest = [each for each in reversed(self._objects.of("Ingestion")) if each["data_set"] == arn]
        return _paged(request, "Ingestions", [described(each) for each in newest])

    def _list(self, request: dict[str, Any], kind: Kind, member: str, told: Callable[[Record], Answer]) -> Answer:
        return _paged(request, member, [told(each) for each in self._objects.of(kind)])


def _athena(request: dict[str, Any]) -> dict[str, Any]:
    parameters = request.get("DataSourceParameters", {})
    if request["Type"] != "ATHENA" or list(parameters) != ["AthenaParameters"]:
        raise invalid("The local QuickSight has data sources of the type ATHENA, with AthenaParameters.")
    return dict(parameters)


def _source(record: Record) -> Answer:
    told = {
        "Arn": record["arn"],
        "DataSourceId": record["id"],
        "Name": record["name"],
        "Type": record["type"],
        "Status": record["status"],
        "CreatedTime": record["created"],
        "LastUpdatedTime": record["updated"],
        "DataSourceParameters": record["parameters"],
    }
    return (
        {**told, "ErrorInfo": {"Type": "GENERIC_SQL_FAILURE", "Message": record["why"]}} if record.get("why") else told
    )


def _set(record: Record) -> Answer:
    return {
        **_summary(record),
        **{name: record[name] for name in _TABLES if name in record},
        "OutputColumns": output_columns(record),
        "ConsumedSpiceCapacityInBytes": 0,
    }


def _summary(record: Record) -> Answer:
    told = {"Arn": record["arn"], f"{record['kind']}Id": record["id"], "Name": record["name"]}
    told |= {"CreatedTime": record["created"], "LastUpdatedTime": record["updated"]}
    match record["kind"]:
        case "DataSet":
            told["ImportMode"] = record["ImportMode"]
        case "Analysis":
            told["Status"] = record["status"]
        case "Dashboard":
            told["PublishedVersionNumber"] = record["published"]
    return told


def _paged(request: dict[str, Any], member: str, listed: list[Answer]) -> Answer:
    token = request.get("NextToken", "0")
    if not token.isdecimal():
        raise AwsError("InvalidNextTokenException", f"The NextToken {token!r} is none of this list's.")
    first, most = int(token), request.get("MaxResults", _PAGE)
    more = {"NextToken": str(first + most)} if len(listed) > first + most else {}
    return {member: listed[first : first + most], **more}


def _refuse_busy(record: Record) -> None:
    if record["status"].endswith("_IN_PROGRESS"):
        raise AwsError("ConflictException", f"{record['arn']} is {record['status']}.", status=409)
