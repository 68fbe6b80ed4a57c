"""Store a record as a dead letter if it cannot be stored in a raw object.

raw_formats.py finds these records, typed_rows.py those that a Parquet object cannot have.
jobs/apply/dead_letter_writer.py stores records that cannot be applied.
"""

from __future__ import annotations

import pyarrow as pa

from cdc_lake.contract.errors import TooManyDeadLettersError
from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.store import ObjectStore


def write(
    store: ObjectStore, pipeline: str, topic: str, epoch: int, batch: pa.RecordBatch, row: int, reason: str
) -> DeadLetter:
    """Store the value of a record of a batch (see RawWriter), and return its dead letter, which the caller stores."""
    record = {name: batch.column(name)[row].as_py() for name in ("partition", "offset", "value", "key", "headers")}
    letter = DeadLetter.of(
        topic,
        record["partition"],
        record["offset"],
        reason,
        record["value"],
        epoch=epoch,
        key=record["key"],
        headers=[(header["key"], header["value"]) for header in record["headers"] or ()],
    )
    dead_letters.put_value(store, pipeline, letter, record["value"])
    return letter


def too_many(topic: str, limit: int, reason: str, partition: int, offset: int) -> TooManyDeadLettersError:
    """Return the error for more dead letters than the limit."""
    return TooManyDeadLettersError(
        f"Cannot land topic {topic}: more than {limit} records of a batch cannot be stored in raw objects. One of them "
        f"is in partition {partition} at offset {offset}: {reason}. Nothing was committed. `cdc-lake topic peek "
        f"{topic} --partition {partition} --offset {offset}` shows it. Correct the program that writes the topic; to "
        "land these records as dead letters, raise dead_letter_limit in the pipeline's YAML."
    )
