"""Register a table's landed objects in the catalog: the lake stage of a Parquet target, without Spark."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lake.contract import failpoints
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.store import ObjectStore, S3Location
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.contract.table import lease, registration
from cdc_lake.contract.table.registration import Registration
from cdc_lake.contract.table.timeline import Checkpoint
from cdc_lake.jobs.apply import upsert
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.parquet_target import raw_table
from cdc_lake.pipeline.parquet_target.boundary import boundary
from cdc_lake.pipeline.pipeline import SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import schema_capture, topic_state
from resources.athena import Athena
from resources.glue.catalog import GlueCatalog
from resources.kafka.resource import Kafka


@dataclass(frozen=True)
class RegisterResult:
    """The result of register().

    `schema` is the source's schema, `registration` the newest one (None before the first landing), `new` the manifests
    that this call registered, and `changed` whether the catalog changed.
    """

    schema: schema_capture.Capture
    registration: Registration | None
    new: tuple[Manifest, ...] = ()
    changed: bool = False

    @property
    def has_changes(self) -> bool:
        """Whether the call registered manifests or changed the catalog."""
        return bool(self.new) or self.changed


def register(
    table: PipelineTable,
    postgres: SourcePostgres,
    kafka: Kafka,
    glue: GlueCatalog,
    athena: Athena,
    location: S3Location,
    owner: str,
) -> RegisterResult:
    """Register what was landed since the last registration, under the table's lease.

    Raises what the capture, the chain and the catalog raise, LeaseHeldError and LeaseLostError.
    """
    store, pipeline = location.store(), table.pipeline
    Epochs(store, pipeline.name).require_whole()
    with lease.held(store, table.lease_key, owner) as held:
        before = registration.load(store, pipeline.name, table.lake_table)
        spec = table.upsert_spec(location, owner)
        # Before the manifests are listed: otherwise a resnapshot that completes in between would move the boundary past
        # all rows whose partitions are registered here.
        landed = table_progress.raw_watermark(store, table, topic_state.current(kafka, table, store))
        found = boundary(store, pipeline.name, landed)
        new = upsert.new_manifests(store, spec, None if before is None else before.commit)
        schema = schema_capture.capture(table, postgres, store)
        if before is None and not new:
            return RegisterResult(schema, None)
        versions = captured_schema.require_versions(store, pipeline.name, table.source_table)
        position = found if before is None else max(found, before.boundary)
        failpoints.reached("lake.before_catalog")
        changed = raw_table.register(
            table, versions, position, location.bucket, new, table_progress.manifests(store, table), glue, athena
        )
        failpoints.reached("lake.after_catalog")
        held.check()
        checkpoint = _checkpoint(before, new, versions[-1].version)
        same = before is not None and (before.checkpoint, before.boundary) == (checkpoint, position)
        if before is not None and same:
            return RegisterResult(schema, before, (), changed)
        after = Registration(checkpoint=checkpoint, boundary=position, instant=registration.new_instant())
        registration.save(store, pipeline.name, table.lake_table, after)
    return RegisterResult(schema, after, tuple(new), changed)


def pending_boundary(store: ObjectStore, table: PipelineTable) -> str | None:
    """Return the boundary of the next registration if it is after the registered boundary, else None.

    It can change without a new manifest: a resnapshot completes after its last manifest was landed.
    """
    before = registration.load(store, table.pipeline.name, table.lake_table)
    head = Chain(store, table.pipeline.name, table.topic).head()
    if before is None or head is None:
        return None
    position = boundary(store, table.pipeline.name, head.watermark)
    return position if position > before.boundary else None


def _checkpoint(before: Registration | None, new: list[Manifest], version: int) -> Checkpoint:
    if new:
        newest = new[-1]
        return Checkpoint(
            topic=newest.topic,
            topic_id=newest.topic_id,
            manifest=newest.number,
            attempt=newest.attempt,
            schema_version=version,
            watermark=newest.watermark,
        )
    if before is None:
        raise AssertionError("the first registration has a manifest")
    return before.checkpoint.model_copy(update={"schema_version": version})
