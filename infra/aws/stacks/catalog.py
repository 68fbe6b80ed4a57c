"""The Glue databases and the Athena workgroup."""

from __future__ import annotations

from aws_cdk import Aws, CfnOutput
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from constructs import Construct

from infra.aws.iam.policies import arn
from infra.aws.sizes.sizes import Size
from infra.aws.stacks.object_events import bucket_name
from infra.aws.stacks.shared.base_stack import LakeStack

_GIB = 1024**3


class CatalogStack(LakeStack):
    """The Glue databases of the pipelines, and one Athena workgroup."""

    def __init__(self, scope: Construct, size: Size) -> None:
        super().__init__(scope, "catalog", size, "Glue database, Athena workgroup")
        first, *others = size.glue_databases
        self._database("Database", first)
        for name in others:
            self._database(f"Database-{name}", name)
        self.workgroup = athena.CfnWorkGroup(
            self,
            "Workgroup",
            name=size.prefix,
            description="Datasets, checks and dashboards of cdc-lake",
            # Without this option, a workgroup with recent queries cannot be deleted.
            recursive_delete_option=not size.buckets.keep_data,
            work_group_configuration=athena.CfnWorkGroup.WorkGroupConfigurationProperty(
                # Athena rejects CREATE TABLE AS with external_location (refined tables) in an enforced workgroup:
                # https://docs.aws.amazon.com/athena/latest/ug/ctas-considerations-limitations.html.
                enforce_work_group_configuration=False,
                publish_cloud_watch_metrics_enabled=True,
                bytes_scanned_cutoff_per_query=size.athena.scan_limit_gib * _GIB,
                engine_version=athena.CfnWorkGroup.EngineVersionProperty(
                    selected_engine_version="Athena engine version 3"
                ),
                result_configuration=athena.CfnWorkGroup.ResultConfigurationProperty(
                    output_location=f"s3://{bucket_name(size, 'work')}/athena-results/",
                    encryption_configuration=athena.CfnWorkGroup.EncryptionConfigurationProperty(
                        encryption_option="SSE_S3"
                    ),
                ),
            ),
        )
        CfnOutput(self, "GlueDatabase", value=first)
        CfnOutput(self, "AthenaWorkgroup", value=size.prefix)

    def arns(self) -> list[str]:
        """Return the ARNs of catalog, databases and tables: Glue requires permissions on all three for a table."""
        parts = [part for name in self.size.glue_databases for part in (f"database/{name}", f"table/{name}/*")]
        return [arn(self, "glue", each) for each in ("catalog", *parts)]

    def workgroup_arn(self) -> str:
        """Return the workgroup's ARN."""
        return arn(self, "athena", f"workgroup/{self.size.prefix}")

    def _database(self, id_: str, name: str) -> None:
        database = glue.CfnDatabase(
            self,
            id_,
            catalog_id=Aws.ACCOUNT_ID,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=name,
                description=f"cdc-lake {self.size.name}: tables and views",
                location_uri=f"s3://{bucket_name(self.size, 'lake')}/lake/",
            ),
        )
        database.apply_removal_policy(self.removal)
