"""Reject objects of a topic that was deleted and re-created: the new topic's objects have the same names."""

from __future__ import annotations

from collections.abc import Sequence

from cdc_lake.contract.errors import TopicRecreatedError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, Manifest
from cdc_lake.contract.sinks import sink_names
from cdc_lake.jobs.adoption.sink import Sink


def require_unused_prefix(chain: Chain, sink: Sink, head: Manifest | None) -> None:
    """Raise TopicRecreatedError if objects of the previous topic of this name were adopted from this prefix.

    The previous topic had the same offsets, so its objects cannot be distinguished from those of the new topic.
    """
    if head is None or chain.read(1).topic_id == head.topic_id:
        return
    start = sink_names.base_prefix(sink.layout, sink.prefix)
    previous: Sequence[LandedObject] = ()
    number = _last_of_previous_topic(chain, head)
    while number and not previous:
        previous = [item for item in chain.read(number).objects if item.sink is not None]
        number -= 1
    if any(item.key.startswith(start) for item in previous):
        raise TopicRecreatedError(
            f"Cannot adopt objects of topic {chain.topic}: it was deleted and re-created, and objects of the previous "
            f"topic, which had the same offsets, are still below {start} ({previous[0].key}). Nothing was adopted. "
            "Give the sink connector and landing.sink another prefix."
        )


def _last_of_previous_topic(chain: Chain, head: Manifest) -> int:
    """Return the number of the last manifest with another topic id than `head`; the first one must have another id."""
    low, high = 1, head.number
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chain.read(middle).topic_id == head.topic_id else (middle, high)
    return low
