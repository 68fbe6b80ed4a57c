"""The network: a VPC in two zones, its NAT gateways and its endpoints."""

from __future__ import annotations

from aws_cdk import Tags
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.aws.iam.security_groups import SecurityGroups
from infra.aws.sizes.size_models import ZONES
from infra.aws.sizes.sizes import Size
from infra.aws.stacks.shared.access import PrivateAccess
from infra.aws.stacks.shared.base_stack import LakeStack

EMR_TAG = "for-use-with-amazon-emr-managed-policies"
"""EMR's managed policy (AmazonEMRServicePolicy_v2) allows actions on resources with this tag only."""


class NetworkStack(LakeStack):
    """The VPC, its security groups, and the instance through which people forward ports."""

    def __init__(self, scope: Construct, size: Size) -> None:
        super().__init__(scope, "network", size, "VPC, endpoints, security groups, private access")
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            vpc_name=size.prefix,
            ip_addresses=ec2.IpAddresses.cidr(size.network.cidr),
            max_azs=ZONES,
            nat_gateways=size.network.nat_gateways,
            subnet_configuration=[
                ec2.SubnetConfiguration(name="public", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=26),
                # The rest of the range: MSK Connect, EMR and Fargate use an address for each worker.
                ec2.SubnetConfiguration(name="private", subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
            ],
        )
        Tags.of(self.vpc).add(EMR_TAG, "true")
        self.private_subnets = list(self.vpc.private_subnets)
        self._endpoints()
        self.groups = SecurityGroups(self, "Groups", self.vpc, size)
        self.access = PrivateAccess(self, "Access", self.vpc, self.groups.access, size)

    def _endpoints(self) -> None:
        """Add a gateway endpoint for S3, which is free and carries nearly all traffic, and interface endpoints.

        All other traffic (the APIs of MSK, EMR and Athena, logs, images) goes through NAT, because there is little of
        it, and each interface endpoint is billed by the hour in each zone.
        """
        self.vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        for name, service in (
            ("Glue", ec2.InterfaceVpcEndpointAwsService.GLUE),
            ("Sts", ec2.InterfaceVpcEndpointAwsService.STS),
            ("SecretsManager", ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER),
        ):
            self.vpc.add_interface_endpoint(name, service=service, private_dns_enabled=True)
