"""Land and apply one table in a command instead of a Dagster run: `verify --apply` and `resnapshot`.

Uses the same leases as the stages raw and lake, and captures the source's schema as they do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.table import lease
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.apply.upsert import UpsertReport, UpsertSpec
from cdc_lake.jobs.landing import land as landing
from cdc_lake.jobs.landing.land import LandReport
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.naming import TableFlow
from cdc_lake.pipeline.source_health import schema_capture
from resources.kafka.resource import Kafka
from resources.postgres.resource import Postgres

RunJob = Callable[[Callable[[Any, Any], Any], Any], Any]
"""Runs a Spark job with its spec."""


def land(
    table: TableFlow,
    kafka: Kafka,
    where: S3Location,
    run: RunJob,
    owner: str,
    wait_seconds: float = lease.WAIT_SECONDS,
) -> LandReport:
    """Land the topic's new records under the landing lease. Raises what the job raises, and LeaseHeldError."""
    key = object_names.landing_lease_key(table.pipeline.name, table.topic)
    with lease.held(where.store(), key, owner, wait_seconds=wait_seconds) as held:
        report: LandReport = run(landing.run, table_progress.landing(table, kafka, where, held.claim).spec)
    return report


def apply(table: TableFlow, postgres: Postgres, spec: UpsertSpec, run: RunJob, epoch: int = 0) -> UpsertReport:
    """Apply the landed records, after capturing the source's schema.

    `epoch` is the epoch of a resnapshot. Raises what schema_capture.look() and the job raise.
    """
    store = spec.location.store()
    new = upsert.new_manifests(store, spec)
    # In this order: each landed record was written under the schema that is captured now, or under an earlier one.
    schema_capture.look(table, postgres, store, epoch=epoch)
    report: UpsertReport = run(upsert.run, replace(spec, until=new[-1].number if new else 0))
    return report
