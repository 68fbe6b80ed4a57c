"""The state of polling one table: its last window, in one object that is replaced under If-Match.

    raw/<pipeline>/_polls/<table>.json

A poll is first stored as begun, with its number and its window. Then the window is read and sent, and after the
producer's flush the poll is stored as complete. After a kill the window is repeated with the same number. Its records
can then be in Kafka twice; they count once, because key and number are equal. A window begins where the previous one
ended. A reconciliation gets a number too, but no window (docs/decisions/0051-polling.md).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cdc_lake.contract.errors import ObjectDamagedError, RaceLostError, SourceBrokenError, reset_advice
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import ObjectStore, PreconditionFailedError
from cdc_lake.contract.table.event_order import Watermark


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Bound(_Frozen):
    """A time before which every change of the source is committed and visible.

    For an incrementing column, all rows with ids up to `last_id` are visible, and no transaction can still add one.
    `next_id` is the largest id that the sequence had returned at `next_id_at`; it becomes `last_id` of a later bound.
    """

    at: datetime
    last_id: int | None = None
    next_id: int | None = None
    next_id_at: datetime | None = None


class PollState(_Frozen):
    """The newest poll: its number (from 1), and its window from `lower` (None: the beginning) to `upper`.

    `upper` advances without a new number while no row changes. The first poll of an epoch reads all rows again; its
    number is greater than all earlier ones, including that of a poller that was paused in the previous epoch.
    """

    version: int = 1
    number: int
    epoch: int = 0
    kind: Literal["window", "reconcile"] = "window"
    state: Literal["begun", "complete"]
    lower: Bound | None
    upper: Bound
    topic_id: str
    attempt: str = Field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def interrupted(self) -> bool:
        """Whether the poll was begun and not completed. It has to be repeated, unless a poller is executing it."""
        return self.state == "begun" and self.kind == "window"

    @property
    def reached(self) -> Bound | None:
        """The bound up to which all changes are in Kafka; None before the end of the first poll."""
        return self.upper if self.state == "complete" or self.kind == "reconcile" else self.lower

    @property
    def watermark(self) -> Watermark | None:
        """The time of `reached` and the newest complete number; None before the end of the first poll."""
        if self.reached is None:
            return None
        done = self.number if self.state == "complete" else self.number - 1
        return Watermark(int(self.reached.at.timestamp() * 1000), done)


@dataclass(frozen=True)
class StoredPoll:
    """The state as stored, with the object's ETag."""

    poll: PollState
    etag: str


@dataclass(frozen=True)
class Polls:
    """The polls of one table of a pipeline. Callers hold the poll lease while they change the state."""

    store: ObjectStore
    pipeline: str
    table: str

    @property
    def key(self) -> str:
        """The key of the state."""
        return object_names.poll_state_key(self.pipeline, self.table)

    def read(self) -> StoredPoll | None:
        """Return the state; None before the first poll. Raises ObjectDamagedError."""
        stored = self.store.get(self.key)
        if stored is None:
            return None
        try:
            return StoredPoll(PollState.model_validate_json(stored.body), stored.etag)
        except ValidationError as error:
            raise ObjectDamagedError(
                f"Cannot read the polls of table {self.table} of pipeline {self.pipeline}: {self.key} is damaged: "
                f"{error.errors()[0]['msg']}. Restore the object, or {reset_advice(self.pipeline)}."
            ) from error

    def begin(self, bound: Bound, topic_id: str, epoch: int = 0) -> StoredPoll:
        """Store the next poll as begun, or return an interrupted poll, which has to be repeated.

        Raises SourceBrokenError if the topic is not the one of the epoch's earlier polls, RaceLostError if another
        poller changed the state.
        """
        last = self.read()
        number, lower = 1 if last is None else last.poll.number + 1, None
        if last is not None and last.poll.epoch == epoch:
            self.require_topic(last.poll, topic_id)
            if last.poll.interrupted:
                return last
            lower = last.poll.reached
        upper = bound if lower is None else not_before(bound, lower)
        poll = PollState(number=number, epoch=epoch, state="begun", lower=lower, upper=upper, topic_id=topic_id)
        return self._put(poll, last)

    def begin_reconcile(self, topic_id: str) -> StoredPoll:
        """Store a reconciliation as begun, after a complete poll. Raises SourceBrokenError, RaceLostError.

        An interrupted reconciliation is not repeated: the number of its deletes is less than those of later polls.
        """
        last = self.read()
        if last is None or last.poll.interrupted:
            raise SourceBrokenError(
                f"Cannot reconcile table {self.table} of pipeline {self.pipeline}: its "
                f"{'first' if last is None else 'last'} poll is not complete. Materialise its topic first."
            )
        self.require_topic(last.poll, topic_id)
        poll = PollState(
            number=last.poll.number + 1,
            epoch=last.poll.epoch,
            kind="reconcile",
            state="begun",
            lower=last.poll.upper,
            upper=last.poll.upper,
            topic_id=topic_id,
        )
        return self._put(poll, last)

    def complete(self, begun: StoredPoll) -> StoredPoll:
        """Store a poll as complete, after the producer's flush. Raises RaceLostError."""
        return self._put(begun.poll.model_copy(update={"state": "complete"}), begun)

    def advance(self, last: StoredPoll, bound: Bound) -> StoredPoll:
        """Move the end of a complete poll to a bound, after no row was found in between. Raises RaceLostError."""
        if last.poll.state != "complete":
            raise ValueError("only the end of a complete poll can advance")
        upper = not_before(bound, last.poll.upper)
        return last if upper == last.poll.upper else self._put(last.poll.model_copy(update={"upper": upper}), last)

    def require_topic(self, poll: PollState, topic_id: str) -> None:
        """Raise SourceBrokenError if the topic was deleted and re-created since the first poll."""
        if poll.topic_id != topic_id:
            raise SourceBrokenError(
                f"Cannot poll table {self.table} of pipeline {self.pipeline}: its topic was deleted and re-created (id "
                f"{poll.topic_id}, now {topic_id}), and the new topic does not have the records of earlier polls. Run "
                f"`cdc-lake resnapshot {self.pipeline}`, which polls all rows again."
            )

    def _put(self, poll: PollState, before: StoredPoll | None) -> StoredPoll:
        poll = poll.model_copy(update={"attempt": str(uuid.uuid4())})
        body = poll.model_dump_json(indent=1).encode()
        try:
            if before is None:
                return StoredPoll(poll, self.store.put_new(self.key, body))
            return StoredPoll(poll, self.store.replace(self.key, body, before.etag))
        except PreconditionFailedError as error:
            stored = self.store.get(self.key)
            # boto3 retries a put whose response was lost, and the retry finds the object of the first put.
            if stored is not None and stored.body == body:
                return StoredPoll(poll, stored.etag)
            raise RaceLostError(
                f"Cannot store poll {poll.number} of table {self.table} of pipeline {self.pipeline}: another poller "
                "changed the state at the same moment. Nothing is lost. Run this again."
            ) from error


def not_before(bound: Bound, last: Bound) -> Bound:
    """Return `bound` with `at` and `last_id` raised to those of `last` if they are less."""
    last_id = bound.last_id if last.last_id is None else max(bound.last_id or last.last_id, last.last_id)
    return bound.model_copy(update={"at": max(bound.at, last.at), "last_id": last_id})
