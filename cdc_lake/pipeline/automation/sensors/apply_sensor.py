"""The sensor that launches apply runs for records that were landed, but not applied by the same run."""

import dagster as dg

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.pending_runs import pending_apply, pending_report
from cdc_lake.pipeline.automation.run_requests import Pending, Tick
from cdc_lake.pipeline.automation.sensors.table_runs import apply_name, launch_apply
from cdc_lake.pipeline.naming import Flow, TableFlow
from resources.object_store import ObjectStore


def build(flow: Flow, jobs: Jobs, seconds: int) -> dg.SensorDefinition:
    """Return the sensor of a pipeline, which runs every `seconds`."""

    @dg.sensor(
        name=apply_name(flow),
        job=jobs.definitions[jobs.apply.name],
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Applies landed records that the run that landed them did not apply, of all tables in one run.",
    )
    def apply(context: dg.SensorEvaluationContext, store: ObjectStore) -> Tick:
        pending = {table.name: _pending(table, store, context) for table in flow.tables}
        return launch_apply(context, jobs, pending).tick

    return apply


def _pending(table: TableFlow, store: ObjectStore, context: dg.SensorEvaluationContext) -> Pending:
    try:
        pending = pending_apply(table, store, owner=context.sensor_name)
        if isinstance(pending, dg.SkipReason):
            pending = pending_report(table, store, context.instance)
    except ContractError as error:  # one table's error must not stop the others; its checks fail too
        context.log.warning(error.user_message)
        return dg.SkipReason(error.user_message)
    return pending
