"""One cold process: start Spark, write Northwind's raw objects in one commit, print its time and CPU seconds.

`benchmarks.write_path.cold_start` starts it for each system, with `CDC_LAKE_HOME` of a stack on which the demo has run.
For cdc-lake, it runs the upsert job of the local profile. The peers are plain Spark programs with Spark's default
settings, `local[2]`, and their jars in `spark.jars`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.measures.usage import cpu_seconds
from benchmarks.report.figures import OURS

COLUMNS = (
    "order_id int, customer_id string, order_date int, required_date int, shipped_date int, order_items string, "
    "products string, customer string, employee string, shipper string, shipment string, updated_at string, "
    "__op string, __db string, __schema string, __table string, __lsn bigint, __txId bigint, __snapshot string, "
    "__source_ts_ms bigint, __deleted string"
)


TABLE = "northwind"


def write_with_cdc_lake(target: str, manifests: int) -> None:
    """Apply Northwind's first manifests to a new target with the jobs and resources of the local profile."""
    from cdc_lake.jobs.apply import upsert  # noqa: PLC0415 - a peer's process does not import Dagster
    from cdc_lake.pipeline.bucket_location import location  # noqa: PLC0415
    from cdc_lake.pipeline.loading import load  # noqa: PLC0415
    from cdc_lake.profile import resolved, spark  # noqa: PLC0415

    spec = load("northwind").tables[0].upsert_spec(location(resolved()["store"]), owner="bench")
    report = spark().run(upsert.run, replace(spec, target=target, until=manifests))
    if report.commit is None:
        raise RuntimeError("Cannot measure a cold process: Northwind's raw objects were not applied.")


def write_with_peer(peer: str, folder: str, objects: Sequence[str]) -> None:
    """Write the objects' newest events to a new table of another system, with Spark's default settings."""
    from benchmarks.peers.session import plain_session  # noqa: PLC0415 - our process does not import these
    from benchmarks.peers.table_formats import PEERS, Events  # noqa: PLC0415
    from infra.local.stack.attach import load_endpoints  # noqa: PLC0415

    kind, events = PEERS[peer], Events(COLUMNS, "order_id")
    session = plain_session(kind, load_endpoints(), folder)
    kind(session, events, folder, TABLE, "cow").create(events.newest(events.read(session, objects)))


def main(system: str, place: str, manifests: int, objects: Sequence[str]) -> Mapping[str, float]:
    """Write a new table in `place`: the name of a target, or a folder (URI).

    Returns the time after the commit, in seconds since 1970, and the CPU seconds until then.
    """
    if system == OURS:
        write_with_cdc_lake(place, manifests)
    else:
        write_with_peer(system, place, objects)
    return {"committed_at": time.time(), "cpu_seconds": cpu_seconds()}


if __name__ == "__main__":
    print(json.dumps(main(*json.loads(sys.argv[1]))), flush=True)
