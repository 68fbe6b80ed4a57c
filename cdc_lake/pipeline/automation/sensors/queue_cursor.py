"""The queue sensor's cursor: the messages that it has received, until it has requested their runs."""

from collections.abc import Collection, Iterable
from typing import Literal

from pydantic import AliasChoices, BaseModel, Field

from cdc_lake.contract.objects import object_names
from cdc_lake.contract.sinks import s3_events, sink_names
from cdc_lake.pipeline.operations import landing_modes
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.aws.sqs import Message

Target = tuple[str, str, Literal["land", "apply"]]
"""Pipeline, table, and the kind of run that may be needed."""


class WaitingMessage(BaseModel):
    """A message whose runs are not requested yet: its receipt handle and its targets."""

    handle: str
    targets: list[Target]


class QueueCursor(BaseModel):
    """The cursor of the queue sensor.

    `waiting_messages` are messages by id. `done` are the handles of messages to delete. `looked_at` is the time at
    which the dead letters were last read, in seconds since 1970. Earlier versions stored `waiting_messages` as `heard`,
    and `waiting_targets` as `waiting`.
    """

    waiting_messages: dict[str, WaitingMessage] = Field(
        default_factory=dict, validation_alias=AliasChoices("waiting_messages", "heard")
    )
    waiting_targets: list[Target] = Field(
        default_factory=list, validation_alias=AliasChoices("waiting_targets", "waiting")
    )
    """Targets that need a run that cannot be launched yet. Their messages are deleted: otherwise the queue would
    deliver them again, and finally move them to its dead letters."""
    done: list[str] = Field(default_factory=list)
    looked_at: float = 0.0

    def add_message(self, message: Message, bucket: str, tables: Collection[PipelineTable]) -> None:
        """Store a message with its targets; objects in other buckets are ignored. Raises UnreadableEventError."""
        created = s3_events.created_objects(message.body)
        found = dict.fromkeys(target for where, key in created if where == bucket for target in targets(tables, key))
        self.waiting_messages[message.id] = WaitingMessage(handle=message.handle, targets=list(found))

    def pending_targets(self) -> list[Target]:
        """Return all targets of the cursor, without duplicates."""
        of_messages = (target for message in self.waiting_messages.values() for target in message.targets)
        return list(dict.fromkeys([*self.waiting_targets, *of_messages]))

    def resolve(self, targets: Collection[Target]) -> None:
        """Remove targets whose run was requested or is not needed; a message without other targets is done."""
        self.waiting_targets = [target for target in self.waiting_targets if target not in targets]
        for id_, message in list(self.waiting_messages.items()):
            message.targets = [target for target in message.targets if target not in targets]
            if not message.targets:
                self.done.append(self.waiting_messages.pop(id_).handle)

    def keep_one_message(self, target: Target) -> None:
        """Keep one of the messages that have only this target, whose pending run cannot be determined now.

        The queue delivers the others again, and finally moves them to its dead letters. If the cursor kept all of them,
        it would become full, and no messages of other tables would be received.
        """
        for id_ in [id_ for id_, message in self.waiting_messages.items() if message.targets == [target]][:-1]:
            del self.waiting_messages[id_]

    def defer(self, target: Target) -> None:
        """Keep a target whose run cannot be launched yet, without its messages."""
        self.resolve({target})
        self.waiting_targets.append(target)


def targets(tables: Iterable[PipelineTable], key: str) -> list[Target]:
    """Return the targets of a new object: apply for a manifest, land for a sink connector's object, else none."""
    found: list[Target] = []
    for table in tables:
        pipeline, sink = table.pipeline.name, landing_modes.sink(table)
        if key.startswith(object_names.manifest_prefix(pipeline, table.topic)):
            found.append((pipeline, table.name, "apply"))
        elif sink is not None and key.startswith(sink_names.topic_prefix(sink.layout, sink.prefix, table.topic)):
            found.append((pipeline, table.name, "land"))
    return found
