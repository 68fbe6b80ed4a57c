"""The connections that the security groups allow, as one table."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_lake_tests.infra_aws.conftest import Synthesized

GROUP, INGRESS = "AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress"
EMR = {
    ("emr-primary", "emr-service", 9443),
    ("emr-service", "emr-primary", 8443),
    ("emr-service", "emr-core", 8443),
}
RULES = EMR | {
    ("connect", "postgres", 5432),
    ("dagster", "postgres", 5432),
    ("spark", "postgres", 5432),
    ("kafka", "kafka", 9098),
    ("spark", "kafka", 9098),
    ("dagster", "kafka", 9098),
    ("access", "kafka", 9098),
    ("dagster", "dagster", 4000),
    ("access", "dagster", 3000),
    ("dagster", "dagster-storage", 5432),
}


def rules(environment: Synthesized) -> set[tuple[str, str, int]]:
    """Return (source group, target group, port) of every rule between groups."""
    groups = environment.of("network", GROUP)
    names = {
        logical: properties["GroupName"].removeprefix(f"{environment.size.prefix}-")
        for logical, properties in groups.items()
        if "GroupName" in properties
    }
    found = set()
    for rule in environment.of("network", INGRESS).values():
        assert rule["FromPort"] == rule["ToPort"]
        assert rule["IpProtocol"] == "tcp"
        found.add((names[_group(rule["SourceSecurityGroupId"])], names[_group(rule["GroupId"])], rule["FromPort"]))
    return found


def _group(reference: dict[str, Any]) -> str:
    return str(reference["Fn::GetAtt"][0])


def test_the_rules_are_exactly_those_of_the_table(environment: Synthesized) -> None:
    assert rules(environment) == RULES


def test_spark_reaches_the_source_only_with_read_by_spark(opposite_of_dev: Synthesized) -> None:
    assert rules(opposite_of_dev) == RULES - {("spark", "postgres", 5432)}


def test_address_ranges_may_connect_only_to_vpc_endpoints(environment: Synthesized) -> None:
    open_to = {
        properties["GroupDescription"]: properties["SecurityGroupIngress"]
        for properties in environment.of("network", GROUP).values()
        if "SecurityGroupIngress" in properties
    }
    assert {description.split("/")[-2] for description in open_to} == {"Glue", "Sts", "SecretsManager"}
    for [rule] in open_to.values():
        assert (rule["FromPort"], rule["ToPort"]) == (443, 443)
        assert "Vpc" in str(rule["CidrIp"])


def test_nothing_may_connect_to_the_access_instance(environment: Synthesized) -> None:
    assert [rule for rule in rules(environment) if rule[1] == "access"] == []


def test_all_groups_and_rules_are_in_the_network_stack(environment: Synthesized) -> None:
    elsewhere = [
        where
        for where, kind, _ in environment.resources()
        if kind in {GROUP, INGRESS} and not where.startswith("network/")
    ]
    assert elsewhere == []


@pytest.mark.parametrize("name", ["postgres", "kafka", "dagster-storage"])
def test_servers_may_not_open_connections(environment: Synthesized, name: str) -> None:
    [group] = [
        properties
        for properties in environment.of("network", GROUP).values()
        if properties.get("GroupName") == f"{environment.size.prefix}-{name}"
    ]
    assert [rule["CidrIp"] for rule in group["SecurityGroupEgress"]] == ["255.255.255.255/32"]
