"""Reads a Hudi table with hudi-rs, without Spark."""

from __future__ import annotations

import pyarrow as pa
from hudi import HudiTableBuilder

from cdc_lake.contract.objects.store import S3Location


def batches(at: S3Location, prefix: str) -> list[pa.RecordBatch]:
    """Return the rows of the copy-on-write table whose folder has this key."""
    options = {
        "AWS_ENDPOINT_URL": at.endpoint_url or "",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": at.region or "",
        "AWS_ACCESS_KEY_ID": at.access_key or "",
        "AWS_SECRET_ACCESS_KEY": at.secret_key or "",
    }
    table = HudiTableBuilder.from_base_uri(f"s3://{at.bucket}/{prefix}").with_options(options).build()
    return [pa.record_batch(batch) for batch in table.read()]
