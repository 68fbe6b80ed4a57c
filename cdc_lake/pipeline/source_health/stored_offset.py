"""The source offset that Kafka Connect has stored for a pipeline's connector, and what it proves.

Connect stores the offset of a record once Kafka has acknowledged that record and every earlier one of the connector.
The slot's confirmed position proves less: without exactly-once Debezium confirms the record whose acknowledgement came
last, and acknowledgements of different partitions come in any order (docs/decisions/0031-without-exactly-once.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from cdc_lake.pipeline.pipeline import Pipeline
from resources.connect.connector_interface import Connectors

_LSNS = ("lsn", "lsn_proc", "lsn_commit")


def highest_lsn(offset: Mapping[str, object] | None) -> int:
    """Return the highest LSN in a stored offset; 0 without an offset."""
    values = [offset.get(name) for name in _LSNS] if offset else []
    return max((value for value in values if isinstance(value, int)), default=0)


def is_exactly_once(config: Mapping[str, str]) -> bool:
    """Return whether the connector requires a worker that writes records and offsets in one Kafka transaction."""
    return config.get("exactly.once.support") == "required"


def acknowledged_lsn(pipeline: Pipeline, connect: Connectors) -> int | None:
    """Return the LSN up to which Kafka contains every committed change, according to the offset that Connect stored.

    Returns None with exactly-once, where each visible record proves this by itself, and 0 if no offset is stored.
    """
    config = connect.get(pipeline.connector)
    if config is not None and is_exactly_once(config):
        return None
    if not connect.reports_offsets(pipeline.connector):
        return 0
    return highest_lsn(next(iter(connect.offsets(pipeline.connector)), None))
