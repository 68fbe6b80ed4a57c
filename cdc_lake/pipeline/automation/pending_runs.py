"""What is due of a table: a position in the data that a run is to be launched for, or why there is none."""

import hashlib

import dagster as dg

from cdc_lake.contract.errors import ContractError, EpochUnopenedError, ForeignObjectError, TopicRecreatedError
from cdc_lake.contract.table import timeline
from cdc_lake.jobs.adoption.listing import Sink
from cdc_lake.jobs.apply import upsert
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.naming import TableFlow, location
from cdc_lake.pipeline.operations import landing_modes
from resources.kafka import Kafka
from resources.object_store import ObjectStore

Due = str | dg.SkipReason


def to_adopt(table: TableFlow, sink: Sink, kafka: Kafka, store: ObjectStore) -> Due:
    """Objects of a sink connector that are not adopted."""
    where = location(store)
    try:
        found = table_progress.landing(table, kafka, where)
    except ContractError as error:
        return dg.SkipReason(error.user_message)
    if found.behind == 0:
        return dg.SkipReason("everything is landed")
    try:
        objects = landing_modes.unadopted(found.chain.store, found.spec, sink)
    except (ForeignObjectError, TopicRecreatedError, EpochUnopenedError) as error:
        objects = [error.user_message]  # the run says it, where it is seen
    if not objects:
        return dg.SkipReason("what the topic has beyond what is landed is in no object yet")
    named = hashlib.sha256("\n".join(objects).encode()).hexdigest()[:12]
    return f"land:{table.topic}:{found.state.topic_id}:after-manifest-{found.spec.head}:objects-{named}"


def to_apply(table: TableFlow, store: ObjectStore, owner: str) -> Due:
    """Manifests that the lake table has not applied, or a version of the source's schema."""
    where = location(store)
    spec = table.upsert_spec(where, owner=owner)
    new = upsert.new_manifests(where.store(), spec)
    if new:
        return f"apply:{table.topic}:{new[-1].topic_id}:manifests-{new[0].number}-{new[-1].number}"
    version = upsert.new_version(where.store(), spec)
    if version is not None:
        return f"apply:{table.topic}:schema-{version}"
    return dg.SkipReason("everything that is landed is applied")


def to_report(table: TableFlow, store: ObjectStore, instance: dg.DagsterInstance) -> Due:
    """A commit of the lake table that no materialisation has reported yet, so that the catalog may lack it.

    The run that made it failed before it was done, or a command made it (`dlq replay`, `resnapshot`, the purge).
    """
    commit = timeline.last_commit(location(store).store(), table.lake_prefix)
    if commit is None:
        return dg.SkipReason("there is no lake table yet, and nothing to apply")
    reported = standard_metadata.last(instance, table.key("lake")).get("instant")
    if reported is not None and reported.value == commit.instant:
        return dg.SkipReason("everything that is landed is applied")
    return f"report:{table.topic}:{commit.instant}"
