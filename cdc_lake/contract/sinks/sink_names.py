"""Objects by the names that S3 sink connectors give them: topic, partition, and one offset.

    lenses           <prefix>/<topic>/<partition>/<last offset>_<first time>_<last time>.json
    lenses_by_field  <prefix>/[<field>=]<value>/…/<topic>(<partition>_<last offset>).json
    confluent        <prefix>/<topic>/partition=<partition>/<topic>+<partition>+<first offset>.json[.gz]
    aiven            <prefix><topic>-<partition>-<first offset>[.gz]

Lenses names an object by its last record, the others by their first. Sources: FileNamer.scala, CloudKeyNamer.scala and
Writer.scala (`objectKeyBuilder.build(uncommittedOffset, …)`) in https://github.com/lensesio/stream-reactor, of which
https://docs.lenses.io/latest/connectors/kafka-connectors/sinks/aws-s3 tells less;
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
"""Digits that the offset has at least, by default: names of fewer offsets sort as these do."""


@dataclass(frozen=True)
class SinkName:
    """What an object's name tells: `offset` is that of its last record, or its first, as `is_last_offset` says."""

    key: str
    topic: str
    partition: int
    offset: int
    is_last_offset: bool
    gzip: bool


def base_prefix(layout: Layout, prefix: str) -> str:
    """The connector's prefix as its objects have it: Aiven's is put before the name as it is."""
    return prefix if layout == "aiven" or not prefix else f"{prefix.rstrip('/')}/"


def topic_prefix(layout: Layout, prefix: str, topic: str) -> str:
    """What the names of a topic's objects begin with; those of other topics may, too."""
    name = require_safe(topic, "topic")
    below = {"lenses": f"{name}/", "lenses_by_field": "", "confluent": f"{name}/", "aiven": f"{name}-"}
    return f"{base_prefix(layout, prefix)}{below[layout]}"


def partition_prefix(layout: Layout, prefix: str, topic: str, partition: int) -> str:
    """What the names of a partition's objects begin with; those of others may, too."""
    below = {
        "lenses": f"{partition}/",
        "lenses_by_field": "",
        "confluent": f"partition={partition}/",
        "aiven": f"{partition}-",
    }
    return f"{topic_prefix(layout, prefix, topic)}{below[layout]}"


def key_before(layout: Layout, prefix: str, topic: str, partition: int, offset: int) -> str:
    """A key that sorts before all objects named by this offset or a higher one; "" where names do not sort so.

    Offsets that have outgrown their padding sort before shorter ones: from half of that on, all objects are listed.
    """
    digits = _PADDED.get(layout)
    if digits is None or 2 * offset >= 10**digits:
        return ""
    folder = partition_prefix(layout, prefix, topic, partition)
    return f"{folder}{f'{topic}+{partition}+' if layout == 'confluent' else ''}{offset:0{digits}d}"


def parse(layout: Layout, prefix: str, key: str) -> SinkName:
    """The name behind a key below the connector's prefix. Raises ForeignObjectError for what no such sink writes."""
    start = base_prefix(layout, prefix)
    found = _NAMES[layout].fullmatch(key.removeprefix(start)) if key.startswith(start) else None
    if found is None:
        raise ForeignObjectError(
            f"object {key} lies below the prefix {prefix!r} of a sink connector, and is not named as the layout "
            f"{layout} names objects: nothing was adopted. Move it away, or correct landing.sink in the pipeline's YAML"
        )
    digits = _PADDED.get(layout, 0)
    if digits and len(found["offset"]) > max(digits, len(str(int(found["offset"])))):
        raise ForeignObjectError(
            f"object {key} has an offset that is padded to more than {digits} digits, {layout}'s default: by name it "
            "sorts before what is adopted, and later ones would not be found. Nothing was adopted: leave the "
            "connector's padding at its default, and move the object away"
        )
    return SinkName(
        key,
        found["topic"],
        int(found["partition"]),
        int(found["offset"]),
        layout.startswith("lenses"),
        (found["ext"] or "").endswith("gz"),
    )
