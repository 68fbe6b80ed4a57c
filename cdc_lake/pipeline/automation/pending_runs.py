"""Find the runs that a table needs: each function returns the next run's position, or the reason why none is needed."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import dagster as dg

from cdc_lake.contract.errors import ContractError, EpochNotLandedError, ForeignObjectError, TopicRecreatedError
from cdc_lake.jobs.adoption.sink import Sink
from cdc_lake.jobs.apply import upsert
from cdc_lake.pipeline import lake_commit, table_progress
from cdc_lake.pipeline.automation.run_requests import Pending
from cdc_lake.pipeline.automation.sensors.parallel_map import is_outage
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.operations import landing_modes
from cdc_lake.pipeline.parquet_target import registering
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.short_digest import short_digest
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore


def pending_adoption(table: PipelineTable, sink: Sink, kafka: Kafka, store: ObjectStore) -> Pending:
    """Return the position of a run that adopts new objects of a sink connector, if there are any."""
    where = location(store)
    try:
        found = table_progress.landing_input(table, kafka, where)
    except TopicRecreatedError as error:  # launch the run: it fails with this error, which the UI shows
        return f"land:{table.topic}:{short_digest(error.user_message)}"
    except ContractError as error:
        return dg.SkipReason(error.user_message)
    if found.offsets_behind == 0:
        return dg.SkipReason("everything is landed")
    try:
        objects = landing_modes.unadopted(found.chain.store, found.spec, sink)
    except (ForeignObjectError, TopicRecreatedError, EpochNotLandedError) as error:
        objects = [error.user_message]  # launch the run: it fails with this error, which the UI shows
    if not objects:
        return dg.SkipReason("the sink connector has not written the topic's newest records yet")
    digest = short_digest("\n".join(objects))
    return f"land:{table.topic}:{found.state.topic_id}:after-manifest-{found.spec.head}:objects-{digest}"


def pending_apply(
    table: PipelineTable, store: ObjectStore, owner: str, reported: Mapping[dg.AssetKey, str] | None = None
) -> Pending:
    """Return the position of a run that applies new manifests, or a new version of the source's schema, to a target.

    If no target needs one and `reported` is given (see reported_instants()), return that of a run that reports a lake
    commit that `reported` lacks. The catalog may lack such a commit: its run failed after the commit, or a command
    wrote it (`dlq replay`, `resnapshot`, the purge).

    Raises the ContractError of a damaged target only if no other target needs a run, and an outage's error at once.
    """
    finders: list[Callable[[], Pending]] = [partial(_pending_apply, each, store, owner) for each in table.in_targets]
    if reported is not None:
        finders += [partial(_pending_report, each, store, reported.get(each.key("lake"))) for each in table.in_targets]
    reasons, errors = [], []
    for find in finders:
        try:
            found = find()
        except ContractError as error:
            if is_outage(error):
                raise
            errors.append(error)
            continue
        if isinstance(found, str):
            return found
        reasons.append(found)
    if errors:
        raise errors[0]
    return reasons[-1]


def _pending_apply(table: PipelineTable, store: ObjectStore, owner: str) -> Pending:
    where = location(store)
    spec = table.upsert_spec(where, owner=owner)
    bucket = where.store()
    commit = lake_commit.newest(bucket, table)
    new = upsert.new_manifests(bucket, spec, commit)
    if new:
        return f"apply:{_subject(table)}:{new[-1].topic_id}:manifests-{new[0].number}-{new[-1].number}"
    # With the topic's id, because the numbers begin again after a reset, and Dagster launches each run key once.
    topic = f"{_subject(table)}:{commit.checkpoint.topic_id if commit and commit.checkpoint else ''}"
    version = upsert.new_version(bucket, spec, commit)
    if version is not None:
        return f"apply:{topic}:schema-{version}"
    if not table.is_hudi and (boundary := registering.pending_boundary(bucket, table)) is not None:
        return f"apply:{topic}:snapshot-{boundary}"
    return dg.SkipReason("everything that is landed is applied")


def reported_instants(instance: dg.DagsterInstance, tables: Iterable[PipelineTable]) -> Mapping[dg.AssetKey, str]:
    """Return the instant of the commit that each lake table's newest materialisation reports, by asset; "" for none."""
    latest = instance.get_latest_materialization_events([table.key("lake") for table in tables])
    found = {}
    for key, event in latest.items():
        if event is not None and event.asset_materialization is not None:
            instant = event.asset_materialization.metadata.get("instant")
            found[key] = "" if instant is None else str(instant.value)
    return found


def _subject(table: PipelineTable) -> str:
    """Return the part of the key for a table in a target: the topic, and the lake table unless it is named like it."""
    return f"{table.topic}:{table.lake_table}" if table.lake_table != table.name else table.topic


def _pending_report(table: PipelineTable, store: ObjectStore, reported: str | None) -> Pending:
    commit = lake_commit.newest(location(store).store(), table)
    if commit is None:
        return dg.SkipReason("the lake table does not exist yet, and there is nothing to apply")
    if reported == commit.instant:
        return dg.SkipReason("everything that is landed is applied")
    return f"report:{_subject(table)}:{commit.instant}"
