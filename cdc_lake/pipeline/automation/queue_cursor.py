"""What the queue's messages are about, kept from tick to tick until the runs that they call for were requested."""

from collections.abc import Collection, Iterable
from typing import Literal

from pydantic import BaseModel, Field

from cdc_lake.contract.objects import object_names
from cdc_lake.contract.sinks import s3_events, sink_names
from cdc_lake.pipeline.naming import TableFlow
from cdc_lake.pipeline.operations import landing_modes
from resources.sqs import Message

Target = tuple[str, str, Literal["land", "apply"]]
"""Pipeline, table, and what is to be looked for."""


class Heard(BaseModel):
    """A message whose runs are not requested yet."""

    handle: str
    targets: list[Target]


class Cursor(BaseModel):
    """Messages by id; what waits for a run; handles of messages that are done; when the dead letters were looked at."""

    heard: dict[str, Heard] = Field(default_factory=dict)
    waiting: list[Target] = Field(default_factory=list)
    """What is due, and can't be launched yet: the messages are done with it, so that they don't run out of receipts."""
    done: list[str] = Field(default_factory=list)
    looked_at: float = 0.0

    def hear(self, message: Message, bucket: str, tables: Collection[TableFlow]) -> None:
        """Keep what a message tells of a bucket. Raises UnreadableEventError."""
        created = s3_events.created_objects(message.body)
        wanted = dict.fromkeys(target for where, key in created if where == bucket for target in targets(tables, key))
        self.heard[message.id] = Heard(handle=message.handle, targets=list(wanted))

    def wanted(self) -> list[Target]:
        """What is to be looked for, each once."""
        heard = (target for each in self.heard.values() for target in each.targets)
        return list(dict.fromkeys([*self.waiting, *heard]))

    def settle(self, targets: Collection[Target]) -> None:
        """Take it that these were requested, or are not due any more: a message that is about nothing else is done."""
        self.waiting = [target for target in self.waiting if target not in targets]
        for id_, each in list(self.heard.items()):
            each.targets = [target for target in each.targets if target not in targets]
            if not each.targets:
                self.done.append(self.heard.pop(id_).handle)

    def hold_one(self, target: Target) -> None:
        """Keep one of the messages that are about this alone, which can't be looked for now: the others come again, and
        go to the queue's dead letters in the end. All of them would fill the cursor, and nobody else's be received.
        """
        for id_ in [id_ for id_, each in self.heard.items() if each.targets == [target]][:-1]:
            del self.heard[id_]

    def wait(self, target: Target) -> None:
        """Keep what is due beyond its messages."""
        self.settle({target})
        self.waiting.append(target)


def targets(tables: Iterable[TableFlow], key: str) -> list[Target]:
    """What an object is a hint to look for: a manifest to apply, a sink connector's object to adopt, or nothing."""
    found: list[Target] = []
    for table in tables:
        pipeline, sink = table.pipeline.name, landing_modes.sink(table)
        if key.startswith(object_names.manifest_prefix(pipeline, table.topic)):
            found.append((pipeline, table.name, "apply"))
        elif sink is not None and key.startswith(sink_names.topic_prefix(sink.layout, sink.prefix, table.topic)):
            found.append((pipeline, table.name, "land"))
    return found
