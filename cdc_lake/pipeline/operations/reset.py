"""Reset a pipeline: delete what it created outside the source database, and its slot, in an order safe to interrupt.

1. The connector, so that it stops writing.
2. Its offsets, slot and topics. Changes would be lost if an offset remained after its topic was deleted, or a slot
   after its connector.
3. Dashboards and catalog entries, so that no reader sees a table without files.
4. The lake, raw objects and dead letters.

Nothing else in the source database is deleted: other pipelines can use its publication and its heartbeat table. A
polled pipeline has no connector and no slot; the state of its polls is deleted with the raw objects, after the topics.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import PurePath

from cdc_lake.contract import failpoints
from cdc_lake.contract.objects import chain_id, object_names
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.plurals import counted
from cdc_lake.contract.table import lease
from cdc_lake.pipeline.assets import refined_table
from cdc_lake.pipeline.connector_config import base_config
from cdc_lake.pipeline.operations import landing_modes
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.publishing.publisher import Dashboards
from resources.connect.connector_interface import Connectors
from resources.deployment import Deployment
from resources.glue.catalog import GlueCatalog
from resources.kafka.resource import Kafka


def reset(
    pipeline: Pipeline,
    postgres: SourcePostgres,
    kafka: Kafka,
    connect: Connectors,
    glue: GlueCatalog,
    store: ObjectStore,
    deployment: Deployment,
    dashboards: Dashboards,
    lease_wait_seconds: float = lease.WAIT_SECONDS,
) -> Iterator[str]:
    """Delete what a pipeline created (see above); yield a line for each deleted item.

    Holds the leases of resnapshots, polls, landings, lake tables and datasets, so that nothing restarts the connector
    and no writer commits meanwhile. An interrupted reset can be run again. A landing that was paused and lost its lease
    cannot append to the next manifest chain. Raises LeaseHeldError if a writer keeps its lease longer than
    `lease_wait_seconds`, and the resources' errors.
    """
    with ExitStack() as leases:
        landings = (object_names.landing_lease_key(pipeline.name, table.topic) for table in pipeline.tables)
        upserts = (table.lease_key for table in pipeline.lake_tables)
        polls = (object_names.poll_lease_key(pipeline.name, table.name) for table in pipeline.tables if pipeline.polled)
        builds = (object_names.dataset_lease_key(pipeline.name, each.name) for each in pipeline.spec.datasets)
        for key in (object_names.resnapshot_lease_key(pipeline.name), *polls, *landings, *upserts, *builds):
            leases.enter_context(lease.held(store, key, f"reset {uuid.uuid4()}", wait_seconds=lease_wait_seconds))
        if not pipeline.polled:
            yield from _delete_stream(pipeline, postgres, connect, store, deployment)
        own = [table.topic for table in pipeline.tables]
        for topic in (*own, *pipeline.own_topics):
            if kafka.delete_topic(topic):
                yield f"topic {topic}"
        failpoints.reached("reset.after_topics")
        yield from dashboards.delete(pipeline.name, [PurePath(file).stem for file in pipeline.spec.dashboards])
        datasets = [(pipeline.catalog, name) for name in refined_table.catalog_names(pipeline, glue)]
        tables = [(table.database, name) for table in pipeline.lake_tables for name in table.catalog_entries]
        for database, name in (*datasets, *tables):
            if glue.delete_table(database, name):
                yield f"catalog entry {database}.{name}"
        failpoints.reached("reset.after_catalog")
        # Renewed before the objects are deleted, so that a landing that resumes after the reset cannot write to the new
        # chain.
        chain_id.renew(store, pipeline.name)
        for prefix in (
            object_names.refined_prefix(pipeline.name),
            object_names.lake_prefix(pipeline.name),
            object_names.pipeline_prefix(pipeline.name),
            object_names.dead_letter_prefix(pipeline.name),
            object_names.closed_letter_prefix(pipeline.name),
        ):
            count = store.delete(item.key for item in store.scan(prefix))
            if count:
                yield f"{counted(count, 'object')} below {prefix}"
            failpoints.reached("reset.after_objects")
        for table in pipeline.tables:
            # A new topic of this name starts at the same offsets, so that its pipeline would adopt these objects.
            if count := store.delete(landing_modes.written(table, store)):
                yield f"{counted(count, 'object')} that the sink connector wrote from topic {table.topic}"


def _delete_stream(
    pipeline: Pipeline, postgres: SourcePostgres, connect: Connectors, store: ObjectStore, deployment: Deployment
) -> Iterator[str]:
    """Delete the connector with its offsets, and the slot."""
    # Only whether there is an epoch: a reset must also work if the object of an epoch is damaged.
    started = next(iter(store.scan(object_names.epoch_prefix(pipeline.name))), None) is not None
    if connect.get(pipeline.connector) is None and started:
        # The connector was deleted, but Connect keeps its offsets, and deletes only offsets of existing connectors.
        connect.ensure_stopped(pipeline.connector, base_config(pipeline, postgres, deployment))
    if connect.delete(pipeline.connector, offsets=True):
        yield f"connector {pipeline.connector} with its offsets"
    failpoints.reached("reset.after_connector")
    if postgres.drop_slot(pipeline.slot):
        yield f"replication slot {pipeline.slot}"
    failpoints.reached("reset.after_slot")
