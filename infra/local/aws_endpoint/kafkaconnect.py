"""MSK Connect's API over the real Connect worker of the stack.

Here: which operations there are, and one lock around them. As in AWS there is nothing else: no REST interface, no
status of a task but its metrics (kafkaconnect_metrics.py), no offsets. Not here: what they do (kafkaconnect_plugins.py,
kafkaconnect_connectors.py).

What differs from AWS, since one worker that is there already runs everything:

- A plugin's archive has to be in S3 and to be a zip with jars; the worker runs the jars that it was started with, and a
  connector whose class it lacks becomes FAILED. Worker configurations are kept and not applied.
- Capacity, role, network and logs are checked by the API's model and kept; they do nothing.
- A connector is made within seconds, not minutes.
- An update is through as soon as the worker says RUNNING: the worker may say so of what ran before. What fails later is
  told by the source watermark, as on AWS.
- Whether the health checks after an update look at more than this, AWS does not say: here an update whose connector or
  task is FAILED is rolled back.
"""

from __future__ import annotations

from threading import RLock
from typing import Any

from infra.local.aws_endpoint.connect_worker import Worker
from infra.local.aws_endpoint.kafkaconnect_connectors import Connectors
from infra.local.aws_endpoint.kafkaconnect_plugins import CheckArchive, Plugins, WorkerConfigurations
from infra.local.aws_endpoint.kafkaconnect_state import Records
from infra.local.aws_endpoint.kafkaconnect_tags import Tags
from infra.local.aws_endpoint.rest_json import Operation


class KafkaConnectApi:
    """The offered operations: parameters in, members of the answer out."""

    def __init__(self, records: Records, worker: Worker, check_archive: CheckArchive) -> None:
        self._records = records
        self._lock = RLock()
        self._connectors = Connectors(records, worker)
        offered: dict[str, Operation] = {
            **Plugins(records, check_archive).operations(),
            **WorkerConfigurations(records).operations(),
            **self._connectors.operations(),
            **Tags(records).operations(),
        }
        self.operations = {name: self._alone(operation) for name, operation in offered.items()}

    def task_states(self) -> dict[str, tuple[str, ...]]:
        """The states of the tasks of each connector that runs, for its metrics. Raises AwsError."""
        with self._lock:
            return self._connectors.task_states()

    def _alone(self, operation: Operation) -> Operation:
        def alone(request: dict[str, Any]) -> dict[str, Any]:
            with self._lock:
                answer = operation(request)
                self._records.save()
                return answer

        return alone
