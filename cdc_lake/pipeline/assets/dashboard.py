"""dashboard: what people look at, made from the datasets through the same Athena SQL as any reader's."""

from collections.abc import Sequence
from pathlib import PurePath

import dagster as dg

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.dashboard import DashboardError, QueryOnce, Rows, load_dashboard
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.automation import dataset_refresh
from cdc_lake.pipeline.checks import upstream_checks
from cdc_lake.pipeline.naming import Flow, location
from cdc_lake.pipeline.publishing.publisher import Dashboards, Declared
from resources.athena import Athena
from resources.object_store import ObjectStore


def build(flow: Flow, file: str, judged: Sequence[dg.AssetCheckKey] = ()) -> dg.AssetsDefinition:
    """The dashboard asset of one YAML file, which is not built while one of the checks `judged` has failed.

    Raises DashboardError where the file is not valid.
    """
    name = PurePath(file).stem
    path = flow.beside(file, "dashboards")
    declared = Declared(flow.name, name, load_dashboard(path))
    if declared.spec.database != flow.spec.catalog:
        raise DashboardError(
            f"{path}: database: use the pipeline's catalog, {flow.spec.catalog}, not {declared.spec.database!r}"
        )

    @dg.asset(
        key=flow.key("dashboard", name),
        deps=[flow.key("dataset", PurePath(dataset).stem) for dataset in flow.spec.datasets],
        description=f"{declared.spec.title}: one HTML page, or QuickSight's dashboard on AWS, by {file}.",
        kinds={"dashboard"},
        group_name=flow.name,
        owners=flow.spec.owners,
        tags=flow.tags("dashboard"),
        freshness_policy=flow.freshness_policy,
    )
    def dashboard_asset(
        context: dg.AssetExecutionContext,
        athena: Athena,
        dashboards: dg.ResourceParam[Dashboards],
        store: ObjectStore,
    ) -> dg.MaterializeResult[None]:
        upstream_checks.require_passed(context.instance, f"dashboard {name}", judged)
        athena = athena.metered(flow.spec.catalog)
        query = QueryOnce(lambda sql: _rows(athena, sql))
        bucket, key = location(store).store(), object_names.stage_state_key(flow.name, "dashboard", name)
        commits = table_progress.lake_commits(bucket, flow)  # before anything is read of the datasets
        noted = stage_state.read(bucket, key)
        published = dashboards.publish(declared, query, noted)
        if published.note != noted:
            stage_state.write(bucket, key, dict(published.note))
        return dg.MaterializeResult(
            metadata={
                "changes": published.changes,
                dataset_refresh.COMMITS: dg.MetadataValue.json(commits),
                **published.metadata,
                **standard_metadata.scanned(athena),
            }
        )

    return dashboard_asset


def _rows(athena: Athena, sql: str) -> Rows:
    found = athena.query(sql)
    return Rows(tuple(name for name, _ in found.columns), found.rows)
