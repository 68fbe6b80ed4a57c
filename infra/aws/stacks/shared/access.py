"""The instance through which people forward ports by Session Manager. It accepts no inbound connections."""

from __future__ import annotations

from aws_cdk import CfnOutput, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.aws.iam.policies import allow, allow_on_all, arn
from infra.aws.sizes.sizes import Size
from infra.aws.stacks.shared.base_stack import LakeStack


class PrivateAccess(Construct):
    """One small instance without a key, a public address or an inbound rule."""

    def __init__(self, scope: LakeStack, id_: str, vpc: ec2.IVpc, group: ec2.ISecurityGroup, size: Size) -> None:
        super().__init__(scope, id_)
        self.instance = ec2.Instance(
            self,
            "Instance",
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
            instance_type=ec2.InstanceType("t4g.nano"),
            # Amazon's image contains the agent. Each deployment uses the newest image, and may replace the instance.
            machine_image=ec2.MachineImage.latest_amazon_linux2023(cpu_type=ec2.AmazonLinuxCpuType.ARM_64),
            security_group=group,
            role=self._role(scope),
            http_tokens=ec2.HttpTokens.REQUIRED,
            block_devices=[
                ec2.BlockDevice(device_name="/dev/xvda", volume=ec2.BlockDeviceVolume.ebs(8, encrypted=True))
            ],
        )
        Tags.of(self.instance).add("Name", f"{size.prefix}-access")
        CfnOutput(scope, "AccessInstance", value=self.instance.instance_id, description="Target of ssm start-session")

    def _role(self, stack: LakeStack) -> iam.Role:
        """Return the role of Session Manager's agent.

        The managed policy AmazonSSMManagedInstanceCore would also allow patching and reading of parameters.
        """
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        role.add_to_policy(
            allow_on_all(
                "ssmmessages:CreateControlChannel",
                "ssmmessages:CreateDataChannel",
                "ssmmessages:OpenControlChannel",
                "ssmmessages:OpenDataChannel",
            )
        )
        role.add_to_policy(allow(["ssm:UpdateInstanceInformation"], [arn(stack, "ec2", "instance/*")]))
        return role
