"""QuickSight's permissions to read the lake, and Dagster's permissions to create objects in QuickSight."""

from __future__ import annotations

from aws_cdk import CfnOutput
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.aws.iam.grants import grant, put_objects, read_objects, read_tables
from infra.aws.iam.policies import allow, allow_on_all, arn
from infra.aws.sizes.sizes import Size
from infra.aws.stacks.catalog import CatalogStack
from infra.aws.stacks.shared.base_stack import LakeStack
from infra.aws.stacks.storage import StorageStack

_KINDS = ("Analysis", "Dashboard", "DataSet")
_NAMES = "cdc-lake-*"
"""Pattern of the ids of the objects that Dagster creates. Dagster may not change other objects."""


class QuickSightStack(LakeStack):
    """The role for QuickSight's queries and the policy for Dagster."""

    def __init__(self, scope: Construct, size: Size, storage: StorageStack, catalog: CatalogStack) -> None:
        super().__init__(scope, "quicksight", size, "permissions of QuickSight")
        self.role = iam.Role(
            self,
            "DataSource",
            role_name=f"{size.prefix}-quicksight",
            description="RunAs role of the Athena data source",
            # No condition on aws:SourceAccount, which QuickSight's documentation does not mention.
            assumed_by=iam.ServicePrincipal(_SERVICE),
        )
        queries = ["GetQueryExecution", "GetQueryResults", "GetWorkGroup", "StartQueryExecution", "StopQueryExecution"]
        metadata = ["GetDataCatalog", "GetDatabase", "GetTableMetadata", "ListDatabases", "ListTableMetadata"]
        grant(
            self.role,
            allow([f"athena:{action}" for action in queries], [catalog.workgroup_arn()]),
            allow([f"athena:{action}" for action in metadata], [arn(self, "athena", "datacatalog/AwsDataCatalog")]),
            read_tables(self, catalog.arns()),
            allow(["glue:BatchGetPartition"], catalog.arns()),  # Athena calls Glue with its caller's permissions
            *read_objects(storage.lake, "lake/"),
            *put_objects(storage.work, "athena-results/"),
        )
        self.authoring = iam.ManagedPolicy(
            self,
            "Authoring",
            managed_policy_name=f"{size.prefix}-quicksight-authoring",
            description="Making and refreshing the objects of cdc-lake in QuickSight",
            statements=self._authoring(),
        )
        CfnOutput(self, "DataSourceRole", value=self.role.role_arn)

    def _authoring(self) -> list[iam.PolicyStatement]:
        verbs = [f"{verb}{kind}" for kind in _KINDS for verb in ("Create", "Delete", "Describe", "Update")]
        verbs += [f"{verb}{kind}Permissions" for kind in _KINDS for verb in ("Describe", "Update")]
        verbs += [
            "CreateIngestion",
            "DescribeIngestion",
            "ListIngestions",
            "PassDataSet",
            "UpdateDashboardPublishedVersion",
        ]
        objects = [arn(self, "quicksight", f"{kind.lower()}/{_NAMES}") for kind in _KINDS]
        source_verbs = [f"{verb}DataSource" for verb in ("Delete", "Describe", "Pass", "Update")]
        source_verbs += ["DescribeDataSourcePermissions", "UpdateDataSourcePermissions"]
        sources = [arn(self, "quicksight", f"datasource/{_NAMES}")]
        return [
            allow([f"quicksight:{verb}" for verb in sorted(verbs)], [*objects, *sources]),
            allow_on_all("quicksight:CreateDataSource", "quicksight:ListDataSets"),
            allow([f"quicksight:{verb}" for verb in source_verbs], sources),
            allow(["iam:PassRole"], [self.role.role_arn], {"StringEquals": {"iam:PassedToService": _SERVICE}}),
        ]


_SERVICE = "quicksight.amazonaws.com"
