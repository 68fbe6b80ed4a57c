"""Spark: an EMR Serverless application, and a cluster if the environment has one."""

from __future__ import annotations

from aws_cdk import CfnOutput, CfnTag
from aws_cdk import aws_emr as emr
from aws_cdk import aws_emrserverless as emrserverless
from constructs import Construct

from infra.aws.iam.spark_roles import SparkRoles
from infra.aws.sizes.size_models import EmrCluster
from infra.aws.sizes.sizes import Size
from infra.aws.stacks.catalog import CatalogStack
from infra.aws.stacks.database import DatabaseStack
from infra.aws.stacks.network import EMR_TAG, NetworkStack
from infra.aws.stacks.shared.base_stack import LakeStack
from infra.aws.stacks.shared.shared_parameters import share
from infra.aws.stacks.storage import StorageStack
from infra.aws.stacks.streaming import StreamingStack

GLUE_FACTORY = "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"
CLUSTER_PARAMETER = "emr-cluster"
"""The name of the shared parameter with the cluster's id."""
_METASTORE = {"hive.metastore.client.factory.class": GLUE_FACTORY}


class SparkStack(LakeStack):
    """An EMR Serverless application, which costs nothing while it is idle, and optionally a permanent cluster, which
    starts jobs without the application's startup time."""

    def __init__(
        self,
        scope: Construct,
        size: Size,
        network: NetworkStack,
        database: DatabaseStack,
        streaming: StreamingStack,
        storage: StorageStack,
        catalog: CatalogStack,
    ) -> None:
        super().__init__(scope, "spark", size, "EMR")
        self._network, self._logs = network, f"s3://{storage.work.bucket_name}/emr-logs/"
        self._artifacts = f"s3://{storage.artifacts.bucket_name}"
        self.roles = SparkRoles(self, "Roles", database, streaming, storage, catalog)
        self.application = self._serverless()
        self.cluster = self._cluster(size.emr.cluster) if size.emr.cluster else None
        CfnOutput(self, "ServerlessApplication", value=self.application.attr_application_id)
        CfnOutput(self, "JobRole", value=self.roles.jobs.role_arn)
        if self.cluster:
            share(self, CLUSTER_PARAMETER, self.cluster.ref)
            CfnOutput(self, "ClusterId", value=self.cluster.ref)

    def _serverless(self) -> emrserverless.CfnApplication:
        limits = self.size.emr
        return emrserverless.CfnApplication(
            self,
            "Application",
            name=self.size.prefix,
            type="SPARK",
            release_label=limits.release,
            architecture="ARM64",
            auto_start_configuration=emrserverless.CfnApplication.AutoStartConfigurationProperty(enabled=True),
            auto_stop_configuration=emrserverless.CfnApplication.AutoStopConfigurationProperty(
                enabled=True, idle_timeout_minutes=limits.idle_minutes
            ),
            maximum_capacity=emrserverless.CfnApplication.MaximumAllowedResourcesProperty(
                cpu=f"{limits.serverless_max_vcpu} vCPU", memory=f"{limits.serverless_max_memory_gib} GB"
            ),
            network_configuration=emrserverless.CfnApplication.NetworkConfigurationProperty(
                subnet_ids=[subnet.subnet_id for subnet in self._network.private_subnets],
                security_group_ids=[self._network.groups.spark.security_group_id],
            ),
            runtime_configuration=[
                emrserverless.CfnApplication.ConfigurationObjectProperty(
                    classification="spark-defaults",
                    properties={f"spark.hadoop.{name}": value for name, value in _METASTORE.items()},
                )
            ],
        )

    def _cluster(self, shape: EmrCluster) -> emr.CfnCluster:
        groups = self._network.groups
        spark_group = [groups.spark.security_group_id]
        cluster = emr.CfnCluster(
            self,
            "Cluster",
            name=self.size.prefix,
            release_label=self.size.emr.release,
            applications=[emr.CfnCluster.ApplicationProperty(name=name) for name in ("Hadoop", "Spark")],
            bootstrap_actions=self._bootstrap(shape),
            configurations=[
                emr.CfnCluster.ConfigurationProperty(
                    classification="spark-hive-site", configuration_properties=_METASTORE
                )
            ],
            job_flow_role=self.roles.profile.ref,
            service_role=self.roles.emr.role_arn,
            security_configuration=self._security().ref,
            log_uri=self._logs,
            visible_to_all_users=True,
            # Each table has one writer, so runs of different tables can be concurrent.
            step_concurrency_level=4,
            managed_scaling_policy=emr.CfnCluster.ManagedScalingPolicyProperty(
                compute_limits=emr.CfnCluster.ComputeLimitsProperty(
                    unit_type="Instances",
                    minimum_capacity_units=shape.core_count,
                    maximum_capacity_units=shape.max_count,
                )
            ),
            instances=emr.CfnCluster.JobFlowInstancesConfigProperty(
                ec2_subnet_id=self._network.private_subnets[0].subnet_id,
                emr_managed_master_security_group=groups.emr_primary.security_group_id,
                emr_managed_slave_security_group=groups.emr_core.security_group_id,
                service_access_security_group=groups.emr_service.security_group_id,
                additional_master_security_groups=spark_group,
                additional_slave_security_groups=spark_group,
                keep_job_flow_alive_when_no_steps=True,
                termination_protected=self.size.buckets.keep_data,
                unhealthy_node_replacement=True,
                master_instance_group=_group("primary", 1, shape.primary_type),
                core_instance_group=_group("core", shape.core_count, shape.core_type),
            ),
            tags=[CfnTag(key=EMR_TAG, value="true")],
        )
        # The cluster refers to the roles only, but EMR needs their policies to start and terminate machines.
        for role in (self.roles.nodes, self.roles.emr):
            cluster.node.add_dependency(role.node.find_child("DefaultPolicy"))
        return cluster

    def _bootstrap(self, shape: EmrCluster) -> list[emr.CfnCluster.BootstrapActionConfigProperty]:
        """Return the bootstrap action that installs Python for our jobs, which EMR's images lack.

        The script's argument is the path of requirements.lock.
        """
        if shape.bootstrap is None:
            return []
        run = emr.CfnCluster.ScriptBootstrapActionConfigProperty(
            path=f"{self._artifacts}/{shape.bootstrap}", args=[f"{self._artifacts}/{shape.requirements}"]
        )
        return [emr.CfnCluster.BootstrapActionConfigProperty(name="python", script_bootstrap_action=run)]

    def _security(self) -> emr.CfnSecurityConfiguration:
        """Return the security configuration: objects encrypted by S3; instance metadata with tokens only (IMDSv2)."""
        return emr.CfnSecurityConfiguration(
            self,
            "Security",
            name=self.size.prefix,
            security_configuration={
                "EncryptionConfiguration": {
                    "EnableInTransitEncryption": False,
                    "EnableAtRestEncryption": True,
                    "AtRestEncryptionConfiguration": {"S3EncryptionConfiguration": {"EncryptionMode": "SSE-S3"}},
                },
                "InstanceMetadataServiceConfiguration": {
                    "MinimumInstanceMetadataServiceVersion": 2,
                    "HttpPutResponseHopLimit": 1,
                },
            },
        )


def _group(name: str, count: int, instance_type: str) -> emr.CfnCluster.InstanceGroupConfigProperty:
    return emr.CfnCluster.InstanceGroupConfigProperty(
        name=name, instance_count=count, instance_type=instance_type, market="ON_DEMAND"
    )
