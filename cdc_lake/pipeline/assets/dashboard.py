"""The asset of a dashboard: query the datasets with Athena, and publish the results."""

from collections.abc import Sequence
from functools import cache, partial
from pathlib import PurePath

import dagster as dg

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.dashboard import DashboardError, Rows, load_dashboard
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.automation import dataset_refresh
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import upstream_checks
from cdc_lake.pipeline.flow import Flow
from cdc_lake.pipeline.publishing.publisher import Dashboards, DeclaredDashboard
from resources.athena import Athena
from resources.object_store import ObjectStore


def build(flow: Flow, file: str, checks: Sequence[dg.AssetCheckKey] = ()) -> dg.AssetsDefinition:
    """Return the asset of one dashboard's YAML file; a run does not publish it while one of the `checks` fails.

    Raises DashboardError if the file is not valid.
    """
    name = PurePath(file).stem
    path = flow.file_path(file, "dashboards")
    declared = DeclaredDashboard(flow.name, name, load_dashboard(path))
    if declared.spec.database != flow.catalog:
        raise DashboardError(
            f"{path}: database: use the pipeline's catalog, {flow.catalog}, not {declared.spec.database!r}"
        )

    @dg.asset(
        key=flow.key("dashboard", name),
        deps=[flow.key("dataset", dataset.name) for dataset in flow.spec.datasets],
        description=f"{declared.spec.title}: an HTML page, or a QuickSight dashboard on AWS, declared in {file}.",
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
        bucket = location(store).store()
        upstream_checks.require_passed(context.instance, f"dashboard {name}", checks, bucket, flow.name)
        athena = athena.metered(flow.catalog)
        query = cache(partial(_rows, athena))  # the fingerprint and the page use the same results
        key = object_names.stage_state_key(flow.name, "dashboard", name)
        commits = table_progress.lake_commits(bucket, flow)  # read before the datasets
        previous = stage_state.read(bucket, key)
        published = dashboards.publish(declared, query, previous)
        if published.state != previous:
            stage_state.write(bucket, key, dict(published.state))
        return dg.MaterializeResult(
            metadata={
                "changes": published.changes,
                dataset_refresh.COMMITS: dg.MetadataValue.json(commits),
                **published.metadata,
                **standard_metadata.athena_usage(athena),
            }
        )

    return dashboard_asset


def _rows(athena: Athena, sql: str) -> Rows:
    result = athena.query(sql)
    return Rows(tuple(name for name, _ in result.columns), result.rows)
