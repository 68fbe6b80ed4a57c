"""Landing and applying one table where a command does it and not the assets: `verify --apply` and `resnapshot`.

Under the same leases, and after the same look at the source's columns, as the stages raw and lake.
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
from resources.kafka import Kafka
from resources.postgres import Postgres

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
    """Land what the topic has, under the landing lease. Raises what the job raises, and LeaseHeldError."""
    key = object_names.landing_lease_key(table.pipeline.name, table.topic)
    with lease.held(where.store(), key, owner, wait_seconds=wait_seconds) as held:
        report: LandReport = run(landing.run, table_progress.landing(table, kafka, where, held.claim).spec)
    return report


def apply(table: TableFlow, postgres: Postgres, spec: UpsertSpec, run: RunJob, epoch: int = 0) -> UpsertReport:
    """Apply what is landed by now, with the columns that the source has after that.

    `epoch` is that of a resnapshot. Raises what the look and the job raise.
    """
    store = spec.location.store()
    new = upsert.new_manifests(store, spec)
    # In this order: what is landed by now was written under a schema that the look finds, or an earlier one.
    schema_capture.look(table, postgres, store, epoch=epoch)
    report: UpsertReport = run(upsert.run, replace(spec, until=new[-1].number if new else 0))
    return report
