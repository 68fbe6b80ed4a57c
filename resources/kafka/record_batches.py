"""Reads ranges of a topic as Arrow record batches; a message's Python object would cost as much as reading it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from resources.kafka.client import Broker
from resources.kafka.records import Ranges, headers, raw_batches

SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("value", pa.binary()),
        ("key", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
"""The columns that a landing reads, named and typed as in Spark's Kafka source."""


def read(broker: Broker, topic: str, ranges: Ranges) -> Iterator[pa.RecordBatch]:
    """Yield the committed records of the ranges (SCHEMA), one partition after another.

    librdkafka holds about 16 MB of a partition, which bounds a batch of large records. Raises what records.read()
    raises.
    """
    for partition, bounds in ranges.items():
        for messages in raw_batches(broker, topic, {partition: bounds}):
            columns = (
                [partition] * len(messages),
                [message.offset() for message in messages],
                [message.value() for message in messages],
                [message.key() for message in messages],
                [[{"key": name, "value": value} for name, value in headers(message)] for message in messages],
            )
            arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
