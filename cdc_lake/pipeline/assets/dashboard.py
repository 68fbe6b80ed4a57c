"""The asset of a dashboard: query the datasets with Athena, and publish the results."""

from collections.abc import Sequence
from functools import cache, partial
from pathlib import PurePath

import dagster as dg

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.dashboard import DashboardError, Rows, load_dashboard
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import upstream_checks
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.publishing.publisher import Dashboards, DeclaredDashboard
from resources.athena import Athena
from resources.object_store import ObjectStore


def build(pipeline: Pipeline, file: str, checks: Sequence[dg.AssetCheckKey] = ()) -> dg.AssetsDefinition:
    """Return the asset of one dashboard's YAML file; a run does not publish it while one of the `checks` fails.

    Raises DashboardError if the file is not valid.
    """
    name = PurePath(file).stem
    path = pipeline.file_path(file, "dashboards")
    declared = DeclaredDashboard(pipeline.name, name, load_dashboard(path))
    if declared.spec.database != pipeline.catalog:
        raise DashboardError(
            f"{path}: database: use the pipeline's catalog, {pipeline.catalog}, not {declared.spec.database!r}"
        )

    @dg.asset(
        key=pipeline.key("dashboard", name),
        deps=[pipeline.key("dataset", dataset.name) for dataset in pipeline.spec.datasets],
        description=f"{declared.spec.title}: an HTML page, or a QuickSight dashboard on AWS, declared in {file}.",
        kinds={"dashboard"},
        group_name=pipeline.name,
        owners=pipeline.spec.owners,
        tags=pipeline.tags("dashboard"),
        freshness_policy=pipeline.freshness_policy,
    )
    def dashboard_asset(
        context: dg.AssetExecutionContext,
        athena: Athena,
        dashboards: dg.ResourceParam[Dashboards],
        store: ObjectStore,
    ) -> dg.MaterializeResult[None]:
        bucket = location(store).store()
        upstream_checks.require_passed(context.instance, f"dashboard {name}", checks, bucket, pipeline.name)
        athena = athena.metered(pipeline.catalog)
        query = cache(partial(_rows, athena))  # the fingerprint and the page use the same results
        key = object_names.stage_state_key(pipeline.name, "dashboard", name)
        commits = table_progress.lake_commits(bucket, pipeline)  # read before the datasets
        previous = stage_state.read(bucket, key)
        published = dashboards.publish(declared, query, previous)
        if published.state != previous:
            stage_state.write(bucket, key, dict(published.state))
        return dg.MaterializeResult(
            metadata={
                "changes": published.changes,
                standard_metadata.LAKE_COMMITS: dg.MetadataValue.json(commits),
                **published.metadata,
                **standard_metadata.athena_usage(athena),
            }
        )

    return dashboard_asset


def _rows(athena: Athena, sql: str) -> Rows:
    result = athena.query(sql)
    return Rows(tuple(name for name, _ in result.columns), result.rows)
