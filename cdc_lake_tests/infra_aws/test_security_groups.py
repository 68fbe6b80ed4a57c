"""Who may speak to whom, as one table."""

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
    """(who, to whom, port) of every rule between groups."""
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


def test_the_rules_are_these_and_no_others(environment: Synthesized) -> None:
    assert rules(environment) == RULES


def test_spark_does_not_reach_the_source_where_it_does_not_verify(variant: Synthesized) -> None:
    assert rules(variant) == RULES - {("spark", "postgres", 5432)}


def test_no_address_is_let_in_but_to_the_endpoints(environment: Synthesized) -> None:
    open_to = {
        properties["GroupDescription"]: properties["SecurityGroupIngress"]
        for properties in environment.of("network", GROUP).values()
        if "SecurityGroupIngress" in properties
    }
    assert {description.split("/")[-2] for description in open_to} == {"Glue", "Sts", "SecretsManager"}
    for [rule] in open_to.values():
        assert (rule["FromPort"], rule["ToPort"]) == (443, 443)
        assert "Vpc" in str(rule["CidrIp"])


def test_nothing_comes_in_to_the_instance_of_private_access(environment: Synthesized) -> None:
    assert [rule for rule in rules(environment) if rule[1] == "access"] == []


def test_all_groups_and_rules_are_the_networks(environment: Synthesized) -> None:
    elsewhere = [
        where
        for where, kind, _ in environment.resources()
        if kind in {GROUP, INGRESS} and not where.startswith("network/")
    ]
    assert elsewhere == []


@pytest.mark.parametrize("name", ["postgres", "kafka", "dagster-storage"])
def test_what_only_answers_opens_no_connection(environment: Synthesized, name: str) -> None:
    [group] = [
        properties
        for properties in environment.of("network", GROUP).values()
        if properties.get("GroupName") == f"{environment.size.prefix}-{name}"
    ]
    assert [rule["CidrIp"] for rule in group["SecurityGroupEgress"]] == ["255.255.255.255/32"]
