"""MSK Connect's metrics in CloudWatch: how many tasks of a connector run and how many failed, by what the worker says.

AWS puts them once a minute; here they are counted when somebody asks CloudWatch, which is moto's.
Not here: which metrics people put themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from moto.cloudwatch.models import cloudwatch_backends

from infra.local.aws_endpoint.errors import AwsError
from infra.local.aws_endpoint.gate import Application, Environ, StartResponse
from infra.local.aws_endpoint.kafkaconnect_state import ACCOUNT

log = logging.getLogger(__name__)

_NAMESPACE = "AWS/KafkaConnect"
_METRICS = {"ErroredTaskCount": "FAILED", "RunningTaskCount": "RUNNING"}

TaskStates = Callable[[], Mapping[str, tuple[str, ...]]]
"""The states of tasks by connector. Raises AwsError where the worker does not answer."""


class Monitoring:
    """CloudWatch's application, with the counts as they are when it is asked."""

    def __init__(self, cloudwatch: Application, states: TaskStates, region: str) -> None:
        self._cloudwatch, self._states, self._region = cloudwatch, states, region

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Count, then pass the request on."""
        try:
            found = self._states()
        except AwsError as error:  # as of a connector whose workers are away: there is nothing to count
            log.warning("No metrics of connectors: %s", error)
            found = {}
        backend = cloudwatch_backends[ACCOUNT][self._region]
        for connector, states in found.items():
            dimensions = [{"Name": "ConnectorName", "Value": connector}]
            data = [
                {"MetricName": name, "Dimensions": dimensions, "Value": float(states.count(state))}
                for name, state in _METRICS.items()
            ]
            backend.put_metric_data(_NAMESPACE, data)
        return self._cloudwatch(environ, start_response)
