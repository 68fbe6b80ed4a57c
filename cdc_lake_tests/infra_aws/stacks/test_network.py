"""The VPC, its endpoints, and the instance for port forwarding."""

from __future__ import annotations

from cdc_lake_tests.infra_aws.conftest import Synthesized


def test_the_vpc_has_two_zones_and_the_gateways_of_the_size(environment: Synthesized) -> None:
    subnets = environment.of("network", "AWS::EC2::Subnet").values()
    private = [s for s in subnets if not s["MapPublicIpOnLaunch"]]
    assert len(private) == 2
    assert len({str(subnet["AvailabilityZone"]) for subnet in private}) == 2
    assert len(environment.of("network", "AWS::EC2::NatGateway")) == environment.size.network.nat_gateways


def test_the_vpc_has_the_endpoints(environment: Synthesized) -> None:
    found = {
        str(e["ServiceName"]): e["VpcEndpointType"] for e in environment.of("network", "AWS::EC2::VPCEndpoint").values()
    }
    kinds = {kind: sorted(name for name, each in found.items() if each == kind) for kind in found.values()}
    assert ["s3" in name for name in kinds["Gateway"]] == [True]
    services = ("glue", "secretsmanager", "sts")
    assert [next(s for s in services if f".{s}" in name) for name in kinds["Interface"]] == list(services)


def test_the_instance_has_no_key_and_no_public_address_and_requires_tokens(environment: Synthesized) -> None:
    instance = environment.one("network", "AWS::EC2::Instance")
    assert "KeyName" not in instance
    assert "NetworkInterfaces" not in instance
    subnet = environment.templates["network"]["Resources"][instance["SubnetId"]["Ref"]]
    assert subnet["Properties"]["MapPublicIpOnLaunch"] is False
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    assert instance["BlockDeviceMappings"][0]["Ebs"]["Encrypted"] is True


def test_the_resources_in_emrs_policy_have_its_tag(environment: Synthesized) -> None:
    tag = {"Key": "for-use-with-amazon-emr-managed-policies", "Value": "true"}
    tagged = [environment.one("network", "AWS::EC2::VPC"), *environment.of("network", "AWS::EC2::Subnet").values()]
    tagged += [
        group
        for group in environment.of("network", "AWS::EC2::SecurityGroup").values()
        if any(part in group.get("GroupName", "") for part in ("-emr-", "-spark"))
    ]
    assert len(tagged) == 1 + 4 + 4
    assert all(tag in each["Tags"] for each in tagged)
