"""Parse the names of S3 sink connectors' objects, which contain topic, partition and one offset.

    lenses           <prefix>/<topic>/<partition>/<last offset>_<first time>_<last time>.json
    lenses_by_field  <prefix>/[<field>=]<value>/…/<topic>(<partition>_<last offset>).json
    confluent        <prefix>/<topic>/partition=<partition>/<topic>+<partition>+<first offset>.json[.gz]
    aiven            <prefix><topic>-<partition>-<first offset>[.gz]

Lenses names an object after its last record, the others after the first. Sources: FileNamer.scala, CloudKeyNamer.scala
and Writer.scala (`objectKeyBuilder.build(uncommittedOffset, …)`) in https://github.com/lensesio/stream-reactor (less
complete: https://docs.lenses.io/latest/connectors/kafka-connectors/sinks/aws-s3);
https://docs.confluent.io/kafka-connectors/s3-sink/current/overview.html and TopicPartitionWriter.java in
https://github.com/confluentinc/kafka-connect-storage-cloud; s3-sink-connector/README.md in
https://github.com/Aiven-Open/cloud-storage-connectors-for-apache-kafka.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from cdc_lake.contract.errors import ForeignObjectError
from cdc_lake.contract.objects.object_names import require_safe

Layout = Literal["lenses", "lenses_by_field", "confluent", "aiven"]

_TOPIC = r"(?P<topic>[A-Za-z0-9._-]+)"
_NAMES: dict[Layout, re.Pattern[str]] = {
    "lenses": re.compile(rf"{_TOPIC}/(?P<partition>\d+)/(?P<offset>\d+)_-?\d+_-?\d+\.(?P<ext>json|gz)", re.ASCII),
    "lenses_by_field": re.compile(
        rf"(?:.*/)?{_TOPIC}\((?P<partition>\d+)_(?P<offset>\d+)\)\.(?P<ext>json|gz)", re.ASCII | re.DOTALL
    ),
    "confluent": re.compile(
        rf"{_TOPIC}/partition=(?P<partition>\d+)/(?P=topic)\+(?P=partition)\+(?P<offset>\d+)\.(?P<ext>json|json\.gz)",
        re.ASCII,
    ),
    "aiven": re.compile(rf"{_TOPIC}-(?P<partition>\d+)-(?P<offset>\d+)(?:\.(?P<ext>gz))?", re.ASCII),
}
_PADDED: dict[Layout, int] = {"lenses": 12, "confluent": 10}
"""The connector's default minimum number of digits of an offset: names sort by offset up to this number of digits."""


@dataclass(frozen=True)
class SinkName:
    """A parsed object name. `offset` is that of the last record if `is_last_offset`, else of the first."""

    key: str
    topic: str
    partition: int
    offset: int
    is_last_offset: bool
    gzip: bool


def base_prefix(layout: Layout, prefix: str) -> str:
    """Return the connector's prefix as its keys begin: with a slash at the end, except for Aiven."""
    return prefix if layout == "aiven" or not prefix else f"{prefix.rstrip('/')}/"


def topic_prefix(layout: Layout, prefix: str, topic: str) -> str:
    """Return the prefix of a topic's objects; objects of other topics can begin with it too."""
    name = require_safe(topic, "topic")
    below = {"lenses": f"{name}/", "lenses_by_field": "", "confluent": f"{name}/", "aiven": f"{name}-"}
    return f"{base_prefix(layout, prefix)}{below[layout]}"


def partition_prefix(layout: Layout, prefix: str, topic: str, partition: int) -> str:
    """Return the prefix of a partition's objects; objects of other partitions can begin with it too."""
    below = {
        "lenses": f"{partition}/",
        "lenses_by_field": "",
        "confluent": f"partition={partition}/",
        "aiven": f"{partition}-",
    }
    return f"{topic_prefix(layout, prefix, topic)}{below[layout]}"


def key_before(layout: Layout, prefix: str, topic: str, partition: int, offset: int) -> str:
    """Return a key that sorts before all objects with this offset or a higher one; "" if names do not sort by offset.

    An offset with more digits than the padding can sort before smaller offsets. Therefore "" is returned from half of
    the largest padded offset on, so that all objects are listed.
    """
    digits = _PADDED.get(layout)
    if digits is None or 2 * offset >= 10**digits:
        return ""
    folder = partition_prefix(layout, prefix, topic, partition)
    return f"{folder}{f'{topic}+{partition}+' if layout == 'confluent' else ''}{offset:0{digits}d}"


def parse(layout: Layout, prefix: str, key: str) -> SinkName:
    """Parse a key below the connector's prefix. Raises ForeignObjectError for a name that the sink does not write."""
    start = base_prefix(layout, prefix)
    found = _NAMES[layout].fullmatch(key.removeprefix(start)) if key.startswith(start) else None
    if found is None:
        raise ForeignObjectError(
            f"Cannot adopt object {key}: it is below the prefix {prefix!r} of a sink connector, but its name does not "
            f"have the layout {layout}. Nothing was adopted. Move it to another prefix, or correct landing.sink in the "
            "pipeline's YAML."
        )
    digits = _PADDED.get(layout, 0)
    if digits and len(found["offset"]) > max(digits, len(str(int(found["offset"])))):
        raise ForeignObjectError(
            f"Cannot adopt object {key}: its offset is padded to more than {digits} digits, the default of "
            f"{layout}. It would sort before adopted objects, and later objects would not be found. Nothing was "
            "adopted. Set the connector's padding to its default, and move the object to another prefix."
        )
    return SinkName(
        key,
        found["topic"],
        int(found["partition"]),
        int(found["offset"]),
        layout.startswith("lenses"),
        (found["ext"] or "").endswith("gz"),
    )
