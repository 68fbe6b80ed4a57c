"""Tasks of a connector on MSK Connect, which tells them by CloudWatch's metrics only.

A connector whose task has failed may stay RUNNING. Metrics come once a minute, some minutes late; what they counted
before the last change of the connector says nothing of it now. Source of the names:
https://docs.aws.amazon.com/msk/latest/developerguide/msk-connect-cloudwatch-metrics.html
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from resources.connect.connector_interface import FAILED, RUNNING, TaskStatus

NAMESPACE = "AWS/KafkaConnect"
DIMENSION = "ConnectorName"
COUNTED = {FAILED: "ErroredTaskCount", RUNNING: "RunningTaskCount"}
"""The metric of each state."""
_WINDOW = timedelta(minutes=15)
_PERIOD_SECONDS = 60


def tasks(cloudwatch: Any, connector: str, since: datetime, log_group: str) -> tuple[TaskStatus, ...] | None:  # noqa: ANN401
    """The connector's tasks by the newest counts after `since`; None where CloudWatch has none.

    Ids are numbers in a row: metrics tell no task's own. In the minute in which a task fails it can be counted as
    running too. Raises what boto3 raises.
    """
    now = datetime.now(UTC)
    # CloudWatch tells whole seconds, and begins with the whole minute, where a count of before can be.
    start = max(since.replace(microsecond=0) + timedelta(seconds=1), now - _WINDOW)
    told = cloudwatch.get_metric_data(
        StartTime=start,
        EndTime=now + timedelta(seconds=_PERIOD_SECONDS),
        ScanBy="TimestampDescending",
        MetricDataQueries=[_query(name, connector) for name in COUNTED.values()],
    )
    counts = {}
    for each in told["MetricDataResults"]:
        counted = zip(each["Timestamps"], each["Values"], strict=True)
        fresh = [value for at, value in counted if at >= start.replace(microsecond=0)]
        if fresh:
            counts[each["Id"]] = int(fresh[0])
    if not counts:
        return None
    states = [state for state, name in COUNTED.items() for _ in range(counts.get(name.lower(), 0))]
    why = f"CloudWatch counts it in {COUNTED[FAILED]}; the log group {log_group} has why"
    return tuple(TaskStatus(number, state, "", why if state == FAILED else None) for number, state in enumerate(states))


def _query(metric: str, connector: str) -> dict[str, Any]:
    dimensions = [{"Name": DIMENSION, "Value": connector}]
    told = {"Namespace": NAMESPACE, "MetricName": metric, "Dimensions": dimensions}
    return {"Id": metric.lower(), "MetricStat": {"Metric": told, "Period": _PERIOD_SECONDS, "Stat": "Maximum"}}
