"""Parse a heartbeat record from Kafka: a row of `cdc_heartbeat` that a snapshot read, or that was streamed."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.source.avro_records import UndecodableError, UnknownSchemaError
from cdc_lake.contract.source.schema_registry import RegistryLocation, readable
from resources.kafka.records import Message

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Heartbeat:
    """A heartbeat's counter, LSN and commit time (ms since 1970), and whether a snapshot read it."""

    counter: int
    lsn: int
    source_ts_ms: int
    snapshot: bool


def heartbeat(topic: str, message: Message, registry: RegistryLocation | None = None) -> Heartbeat | None:
    """Return the heartbeat of a record. For a record that is not a heartbeat, log a warning and return None.

    Skipping a damaged heartbeat is safe: the counter of the next one shows that it is missing. Raises ContractError if
    the registry does not have the schema of the record.
    """
    if message.value is None:
        return None
    try:
        row = json.loads(readable(message.value, registry))
        return Heartbeat(
            counter=int(row["beats"]),
            lsn=int(row["__lsn"]),
            source_ts_ms=int(row["__source_ts_ms"]),
            # A connector that was killed in a chunk of an incremental snapshot also marks streamed changes as a
            # snapshot's. Only rows that a snapshot read have the operation r.
            snapshot=row["__snapshot"] not in (None, "false") and row.get("__op", "r") == "r",
        )
    except UnknownSchemaError as error:
        # Skipping it would look like a gap in the stream, which ends the epoch.
        raise ContractError(
            f"Cannot read the heartbeat of topic {topic} at offset {message.offset} of partition {message.partition}: "
            f"{error}. Check that the deployment's registry is the one that the connector writes to."
        ) from error
    except (UndecodableError, ValueError, KeyError, TypeError) as error:
        log.warning(
            "topic %s, partition %d, offset %d: skipped a record that is not a heartbeat (%r): %r",
            *(topic, message.partition, message.offset, error, message.value[:100]),
        )
        return None
