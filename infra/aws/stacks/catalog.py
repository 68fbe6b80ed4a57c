"""The catalog and the SQL over it: Glue's database and Athena's workgroup."""

from __future__ import annotations

from aws_cdk import Aws, CfnOutput
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from constructs import Construct

from infra.aws.iam.policies import arn
from infra.aws.sizes.sizes import Size
from infra.aws.stacks.base_stack import LakeStack
from infra.aws.stacks.object_events import bucket_name

_GIB = 1024**3


class CatalogStack(LakeStack):
    """One database, one workgroup."""

    def __init__(self, scope: Construct, size: Size) -> None:
        super().__init__(scope, "catalog", size, "Glue database, Athena workgroup")
        lake = f"s3://{bucket_name(size, 'lake')}/lake/"
        self.database = glue.CfnDatabase(
            self,
            "Database",
            catalog_id=Aws.ACCOUNT_ID,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=size.catalog, description=f"cdc-lake {size.name}: tables and views", location_uri=lake
            ),
        )
        self.database.apply_removal_policy(self.removal)
        self.workgroup = athena.CfnWorkGroup(
            self,
            "Workgroup",
            name=size.prefix,
            description="Datasets, checks and dashboards of cdc-lake",
            # Recent queries are part of a workgroup: without this, it can't be deleted while it has any.
            recursive_delete_option=not size.buckets.keep_data,
            work_group_configuration=athena.CfnWorkGroup.WorkGroupConfigurationProperty(
                enforce_work_group_configuration=True,
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
        CfnOutput(self, "GlueDatabase", value=size.catalog)
        CfnOutput(self, "AthenaWorkgroup", value=size.prefix)

    def arns(self) -> list[str]:
        """Catalog, database, tables: Glue asks for all three whatever is done to a table."""
        name = self.size.catalog
        return [arn(self, "glue", each) for each in ("catalog", f"database/{name}", f"table/{name}/*")]

    def workgroup_arn(self) -> str:
        """The workgroup."""
        return arn(self, "athena", f"workgroup/{self.size.prefix}")
