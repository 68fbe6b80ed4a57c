"""Dagster's deployment: webserver, daemon and code location on Fargate, PostgreSQL for the instance."""

from __future__ import annotations

from aws_cdk import CfnOutput, Duration
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_servicediscovery as servicediscovery
from constructs import Construct

from infra.aws.iam import dagster_role
from infra.aws.iam.grants import grant, read_user_secrets
from infra.aws.iam.security_groups import CODE_LOCATION_PORT, WEBSERVER_PORT
from infra.aws.sizes.sizes import Size
from infra.aws.stacks.connect import retention
from infra.aws.stacks.dagster.settings import instance_settings, settings
from infra.aws.stacks.dagster.storage import DagsterStorage
from infra.aws.stacks.shared.base_stack import LakeStack
from infra.aws.stacks.shared.stack_set import StackSet

_WORKSPACE = "/opt/dagster/workspace.yaml"
_ANYWHERE = "0.0.0.0"  # noqa: S104 - inside a task; the security group restricts connections
_MODULE = "cdc_lake.definitions"
_CODE = ("dagster", "code-server", "start", "-h", _ANYWHERE, "-p", str(CODE_LOCATION_PORT), "-m", _MODULE)
COMMANDS = {
    "code": _CODE,
    # People open it as localhost, through a forwarded port; it rejects other Host headers (cdc_lake/webserver).
    "webserver": ("python", "-m", "cdc_lake.webserver", "-h", _ANYWHERE, "-p", str(WEBSERVER_PORT), "-w", _WORKSPACE),
    "daemon": ("dagster-daemon", "run", "-w", _WORKSPACE),
}


class DagsterStack(LakeStack):
    """One ECS cluster with three services of one task each."""

    def __init__(self, scope: Construct, size: Size, stacks: StackSet) -> None:
        super().__init__(scope, "dagster", size, "webserver, daemon, code location")
        self._stacks = stacks
        self.domain = f"{size.prefix}.internal"
        self.storage = DagsterStorage(self, "Storage", stacks.network, size)
        self._log_group = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/cdc-lake/{size.name}/dagster",
            retention=retention(size.dagster.log_days),
            removal_policy=self.removal,
        )
        self._cluster = ecs.Cluster(
            self,
            "Cluster",
            cluster_name=size.prefix,
            vpc=stacks.network.vpc,
            container_insights_v2=ecs.ContainerInsights.DISABLED,
            # Sessions of people in a task (`aws ecs execute-command`) are logged in the tasks' log group.
            execute_command_configuration=ecs.ExecuteCommandConfiguration(
                logging=ecs.ExecuteCommandLogging.OVERRIDE,
                log_configuration=ecs.ExecuteCommandLogConfiguration(cloud_watch_log_group=self._log_group),
            ),
        )
        self._cluster.add_default_cloud_map_namespace(name=self.domain, type=servicediscovery.NamespaceType.DNS_PRIVATE)
        self.role = self._role()
        # The code location makes the AWS calls. The webserver only reads the logs of runs from S3, and the daemon makes
        # no calls; both use the code location and the instance's storage.
        self._service("code", CODE_LOCATION_PORT, self.role)
        self._service("webserver", WEBSERVER_PORT, self._webserver_role())
        self._service("daemon", None, None)
        CfnOutput(
            self,
            "WebserverAddress",
            value=f"webserver.{self.domain}:{WEBSERVER_PORT}",
            description="Host and port for port forwarding to the webserver",
        )

    def _role(self) -> iam.Role:
        stacks = self._stacks
        role = iam.Role(
            self,
            "CodeRole",
            role_name=f"{self.size.prefix}-dagster",
            assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"),
            managed_policies=[stacks.quicksight.authoring],
        )
        cluster, secret = stacks.streaming.cluster_arn, stacks.database.replication_secret.secret_arn
        grant(
            role,
            *dagster_role.object_statements(stacks.storage, stacks.events),
            *dagster_role.kafka_statements(self, cluster),
            *dagster_role.connect_statements(self, stacks.connect, secret),
            *dagster_role.catalog_statements(self, stacks.catalog),
            *dagster_role.spark_statements(self, stacks.spark),
            *dagster_role.metric_statements(),
            *read_user_secrets(self, self.size.registry_secret, self.size.hash_salt_secret),
        )
        self._restarts(role)
        return role

    def _webserver_role(self) -> iam.Role:
        role = iam.Role(
            self,
            "WebserverRole",
            role_name=f"{self.size.prefix}-dagster-webserver",
            assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"),
        )
        grant(role, *dagster_role.run_log_statements(self._stacks.storage))
        return role

    def _restarts(self, role: iam.Role) -> None:
        """Add a separate policy for actions that cfn-lint does not know; the tests compare them with boto3's calls."""
        policy = iam.Policy(self, "Restarts", roles=[role], statements=[dagster_role.restart_statement(self)])
        found = policy.node.default_child
        if not isinstance(found, iam.CfnPolicy):
            raise TypeError(f"the policy's CDK resource is {type(found).__name__}, not AWS::IAM::Policy")
        found.add_metadata("cfn-lint", {"config": {"ignore_checks": ["W3037"]}})

    def _service(self, name: str, port: int | None, role: iam.Role | None) -> None:
        size = self.size.dagster
        task = ecs.FargateTaskDefinition(
            self, f"{name.title()}Task", cpu=size.cpu, memory_limit_mib=size.memory_mib, task_role=role
        )
        task.add_container(
            name,
            image=ecs.ContainerImage.from_ecr_repository(self._stacks.storage.image, size.image_tag),
            command=list(COMMANDS[name]),
            # All tasks of the service record runs under one host name, so that a new task reports the runs of the
            # replaced task as failed (cdc_lake/pipeline/automation/orphaned_runs.py).
            environment={**settings(self, self._stacks), "CDC_LAKE_RUN_HOST": f"code.{self.domain}"}
            if name == "code"
            else {"CDC_LAKE_CODE_HOST": f"code.{self.domain}", **instance_settings(self, self._stacks)},
            secrets=self.storage.environment(),
            logging=ecs.LogDrivers.aws_logs(stream_prefix=name, log_group=self._log_group),
            port_mappings=[ecs.PortMapping(container_port=port)] if port else None,
            health_check=_health(name),
        )
        service = ecs.FargateService(
            self,
            name.title(),
            service_name=name,
            cluster=self._cluster,
            task_definition=task,
            desired_count=1,
            # Two daemons would launch each run twice; two code locations would share the sensors' ticks.
            min_healthy_percent=0,
            max_healthy_percent=100,
            circuit_breaker=ecs.DeploymentCircuitBreaker(enable=True, rollback=True),
            security_groups=[self._stacks.network.groups.dagster],
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
            enable_execute_command=name == "code",
            cloud_map_options=ecs.CloudMapOptions(name=name) if port else None,
        )
        service.node.add_dependency(self.storage)


def _health(name: str) -> ecs.HealthCheck | None:
    if name != "code":
        return None
    return ecs.HealthCheck(
        command=["CMD", "dagster", "api", "grpc-health-check", "-p", str(CODE_LOCATION_PORT)],
        # The probe is slow: it imports Dagster, on a fraction of a CPU that it shares with runs.
        interval=Duration.seconds(60),
        timeout=Duration.seconds(30),
        retries=5,
        start_period=Duration.seconds(120),
    )
