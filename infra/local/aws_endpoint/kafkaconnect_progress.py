"""How far a connector of MSK Connect is: the states that AWS tells, by what the worker says.

Here: what is under way at a connector, and what ends it. Not here: the operations that begin it
(kafkaconnect_connectors.py).
"""

from __future__ import annotations

from infra.local.aws_endpoint.connect_worker import RefusedError, Worker
from infra.local.aws_endpoint.kafkaconnect_state import Record, Records, now

_BUSY = frozenset({"CREATING", "UPDATING", "DELETING", "RESTARTING", "PAUSING", "RESUMING"})


class Progress:
    """Looks at the worker when a connector is asked for: nothing runs in between."""

    def __init__(self, records: Records, worker: Worker) -> None:
        self._records, self._worker = records, worker

    def put(self, connector: Record, config: dict[str, str]) -> None:
        """Give the worker a configuration; what it refuses ends what is under way."""
        try:
            self._worker.put(connector["name"], {**config, "name": connector["name"]})
        except RefusedError as error:
            connector["refused"] = str(error)

    def begin(self, connector: Record, kind: str) -> Record:
        """A new operation, the one that is under way at the connector."""
        made = self._records.add(
            "connector-operation", connector["name"], type=kind, state="PENDING", connector=connector["arn"], why=None
        )
        connector["operation"] = made["arn"]
        return made

    def looked_at(self, arn: str) -> Record:
        """A connector as it is by now. Raises NotFoundException, also for one that is gone by now."""
        return self.look(arn) or self._records.get("connector", arn)

    def look(self, arn: str) -> Record | None:
        """A connector in the state that the worker says by now; None for one that is gone by now."""
        found = self._records.get("connector", arn)
        if found["state"] not in _BUSY:
            return found
        status = self._worker.status(found["name"])
        if found["state"] == "DELETING":
            if status is None:
                self._records.remove(arn)
            return None if status is None else found
        wrong = found.pop("refused", None) or (status.trace if status is not None and status.failed else None)
        if wrong is not None:
            self._failed(found, wrong.strip())
        elif found["state"] == "PAUSING":
            if status is not None and status.state == "PAUSED":
                self._end(found, "PAUSED")
        elif status is not None and status.running:
            self._end(found, "RUNNING")
        return found

    def _failed(self, found: Record, wrong: str) -> None:
        if found["state"] == "UPDATING" and "before" in found:
            found["connectorConfiguration"] = found.pop("before")
            self.put(found, found["connectorConfiguration"])
            self._end(found, "RUNNING", "ROLLBACK_COMPLETE", wrong)
        else:
            found["why"] = wrong
            self._end(found, "FAILED", "UPDATE_FAILED", wrong)

    def _end(self, found: Record, state: str, operation: str | None = None, wrong: str | None = None) -> None:
        found["state"] = state
        found["why"] = wrong if state == "FAILED" else None
        found.pop("before", None)
        at = found.pop("operation", None)
        if at is None:
            return
        done = self._records.get("connector-operation", at)
        family = done["type"].partition("_")[0]
        done["state"], done["why"] = operation or f"{family}_COMPLETE", wrong
        done["ended"] = now()
