"""Security groups and their rules, which define the components that may connect to each other.

AWS stores the descriptions; a change of a group's description replaces the group.
"""

from __future__ import annotations

from aws_cdk import Tags
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.aws.sizes.sizes import Size

POSTGRES_PORT = 5432
KAFKA_IAM_PORT = 9098
CODE_LOCATION_PORT = 4000
WEBSERVER_PORT = 3000
_EMR_SERVICE_PORT = 9443
_EMR_NODE_PORT = 8443


class SecurityGroups(Construct):
    """One group for each component. Each inbound rule allows connections from a group, never from IP addresses."""

    def __init__(self, scope: Construct, id_: str, vpc: ec2.IVpc, size: Size) -> None:
        super().__init__(scope, id_)
        self._vpc, self._prefix = vpc, size.prefix
        self.connect = self._group("connect", "Connect workers: may read the source")
        self.spark = self._group("spark", "EMR nodes and EMR Serverless workers")
        self.dagster = self._group("dagster", "webserver, daemon and code location")
        self.access = self._group("access", "the instance that people forward ports through: nothing comes in")
        self.postgres = self._group("postgres", "the source database", answers_only=True)
        self.kafka = self._group("kafka", "brokers, and Connect workers beside them", answers_only=True)
        self.dagster_storage = self._group("dagster-storage", "PostgreSQL of the Dagster instance", answers_only=True)
        self.emr_primary = self._group("emr-primary", "managed by EMR: primary node")
        self.emr_core = self._group("emr-core", "managed by EMR: core and task nodes")
        self.emr_service = self._group("emr-service", "managed by EMR: the way in for the service", answers_only=True)
        self._source(size)
        self._kafka()
        self._dagster()
        self._emr()

    def _source(self, size: Size) -> None:
        self._allow(self.connect, self.postgres, POSTGRES_PORT, "Debezium reads the replication slot and the snapshot")
        # Dagster's `source` asset creates the publication, the heartbeat table and the triggers; its checks read the
        # slot and rows.
        self._allow(self.dagster, self.postgres, POSTGRES_PORT, "source assets and checks of Dagster")
        if size.database.read_by_spark:
            self._allow(self.spark, self.postgres, POSTGRES_PORT, "cdc-lake verify compares rows in Spark")

    def _kafka(self) -> None:
        # A connector has this group and `connect`: MSK Connect reaches the cluster from within this group.
        self._allow(self.kafka, self.kafka, KAFKA_IAM_PORT, "Connect workers, which are in this group too")
        self._allow(self.spark, self.kafka, KAFKA_IAM_PORT, "landing reads topics")
        self._allow(self.dagster, self.kafka, KAFKA_IAM_PORT, "topics, offsets and checks")
        self._allow(self.access, self.kafka, KAFKA_IAM_PORT, "users, through a forwarded port")

    def _dagster(self) -> None:
        self._allow(self.dagster, self.dagster, CODE_LOCATION_PORT, "webserver and daemon call the code location")
        self._allow(self.access, self.dagster, WEBSERVER_PORT, "users, through a forwarded port")
        self._allow(self.dagster, self.dagster_storage, POSTGRES_PORT, "runs, events and cursors")

    def _emr(self) -> None:
        """Add the rules that EMR requires in private subnets. EMR checks them at each start and adds missing ones."""
        self._allow(self.emr_primary, self.emr_service, _EMR_SERVICE_PORT, "EMR: the primary node calls the service")
        for nodes in (self.emr_primary, self.emr_core):
            self._allow(self.emr_service, nodes, _EMR_NODE_PORT, "EMR: the service calls the nodes")
        self.emr_service.add_egress_rule(self.emr_primary, ec2.Port.tcp(_EMR_NODE_PORT), "EMR")
        self.emr_service.add_egress_rule(self.emr_core, ec2.Port.tcp(_EMR_NODE_PORT), "EMR")
        for group in (self.emr_primary, self.emr_core, self.emr_service, self.spark):
            Tags.of(group).add("for-use-with-amazon-emr-managed-policies", "true")

    def _group(self, name: str, description: str, *, answers_only: bool = False) -> ec2.SecurityGroup:
        """Return a new group; with `answers_only`, it may only open connections that an outbound rule allows."""
        return ec2.SecurityGroup(
            self,
            name.title().replace("-", ""),
            vpc=self._vpc,
            security_group_name=f"{self._prefix}-{name}",
            description=description,
            allow_all_outbound=not answers_only,
        )

    def _allow(self, who: ec2.SecurityGroup, to: ec2.SecurityGroup, port: int, why: str) -> None:
        to.add_ingress_rule(who, ec2.Port.tcp(port), why)
