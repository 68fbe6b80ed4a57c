"""Task states of a connector on MSK Connect, which reports them only as CloudWatch metrics.

A connector can stay RUNNING although its task has failed. CloudWatch gets a count every minute, some minutes late.
Counts from before the connector's last change are ignored. Source of the names:
https://docs.aws.amazon.com/msk/latest/developerguide/msk-connect-cloudwatch-metrics.html
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from resources.connect.connector_interface import FAILED, RUNNING, TaskStatus

NAMESPACE = "AWS/KafkaConnect"
DIMENSION = "ConnectorName"
METRIC_BY_STATE = {FAILED: "ErroredTaskCount", RUNNING: "RunningTaskCount"}
"""The metric of each state."""
_WINDOW = timedelta(minutes=15)
_PERIOD_SECONDS = 60


def tasks(cloudwatch: Any, connector: str, since: datetime, log_group: str) -> tuple[TaskStatus, ...] | None:  # noqa: ANN401
    """Return the connector's tasks according to the newest counts after `since`; None if there are no counts.

    Ids are consecutive numbers, since the metrics contain no task ids. In the minute in which a task fails, it can also
    be counted as running. Raises what boto3 raises.
    """
    now = datetime.now(UTC)
    # CloudWatch rounds the start down to a whole minute, so its result can contain a count from before `since`.
    start = max(since.replace(microsecond=0) + timedelta(seconds=1), now - _WINDOW)
    metrics = cloudwatch.get_metric_data(
        StartTime=start,
        EndTime=now + timedelta(seconds=_PERIOD_SECONDS),
        ScanBy="TimestampDescending",
        MetricDataQueries=[_query(name, connector) for name in METRIC_BY_STATE.values()],
    )
    counts = {}
    for each in metrics["MetricDataResults"]:
        counted = zip(each["Timestamps"], each["Values"], strict=True)
        fresh = [value for at, value in counted if at >= start.replace(microsecond=0)]
        if fresh:
            counts[each["Id"]] = int(fresh[0])
    if not counts:
        return None
    states = [state for state, name in METRIC_BY_STATE.items() for _ in range(counts.get(name.lower(), 0))]
    why = f"CloudWatch counts it in {METRIC_BY_STATE[FAILED]}; the log group {log_group} contains the cause"
    return tuple(TaskStatus(number, state, "", why if state == FAILED else None) for number, state in enumerate(states))


def _query(metric: str, connector: str) -> dict[str, Any]:
    dimensions = [{"Name": DIMENSION, "Value": connector}]
    found = {"Namespace": NAMESPACE, "MetricName": metric, "Dimensions": dimensions}
    return {"Id": metric.lower(), "MetricStat": {"Metric": found, "Period": _PERIOD_SECONDS, "Stat": "Maximum"}}
