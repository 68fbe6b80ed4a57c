"""Files of a Hudi timeline, as Hudi writes them."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import fastavro

from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.contract.table.timeline import CHECKPOINT_KEY, Checkpoint

TABLE = "lake/northwind/cdc_events/"
HOODIE = f"{TABLE}.hoodie/"
RECORDED = Path(__file__).parent / "recorded" / "20261121004449958.commit"
CHECKPOINT = Checkpoint(
    topic="msk.datalake.cdc_events",
    topic_id="tlI7SJ8oTvi+dUDluGG5zw",
    manifest=2,
    schema_version=1,
    watermark=Watermark(source_ts_ms=1795221884663, lsn=31268664),
)


def commit(manifest: int | None) -> bytes:
    """Return the recorded commit with the checkpoint of this manifest, or without a checkpoint."""
    body = json.loads(RECORDED.read_text())
    del body["extraMetadata"][CHECKPOINT_KEY]
    if manifest is not None:
        body["extraMetadata"][CHECKPOINT_KEY] = CHECKPOINT.model_copy(update={"manifest": manifest}).model_dump_json()
    return json.dumps(body).encode()


def rollback(at: str, *instants: str, kept: str = "20260101000000000") -> bytes:
    """Return the metadata of a completed rollback; it also names `kept`, the commit of a log file's base file."""
    body = BytesIO()
    texts = {"type": "array", "items": "string"}
    fields = [("startRollbackTime", "string"), ("commitsRollback", texts), ("file", "string")]
    schema = {"type": "record", "name": "Metadata", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    record = {"startRollbackTime": at, "commitsRollback": list(instants), "file": f".8f3b-0_{kept}.log.1_0-1-2"}
    fastavro.writer(body, schema, [record])
    return body.getvalue()
