"""What stacks tell each other: by exports what stands still, by SSM what is replaced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cdc_lake_tests.infra_aws.conftest import Synthesized
from cdc_lake_tests.infra_aws.statements import statements, text

REPLACED = {"AWS::EMR::Cluster", "AWS::KafkaConnect::WorkerConfiguration"}
"""A change makes another one of these, and an export that is imported would not let it."""


def names(value: Any) -> Iterator[str]:  # noqa: ANN401 - a template's value
    """The logical ids that a value of a template refers to."""
    if isinstance(value, dict):
        if "Ref" in value:
            yield value["Ref"]
        if "Fn::GetAtt" in value:
            yield value["Fn::GetAtt"][0]
        for each in value.values():
            yield from names(each)
    elif isinstance(value, list):
        for each in value:
            yield from names(each)


def exported(environment: Synthesized) -> dict[str, set[str]]:
    """The kinds of the resources that each export tells of."""
    return {
        f"{part}/{name}": {
            template["Resources"][each]["Type"] for each in names(output["Value"]) if each in template["Resources"]
        }
        for part, template in environment.templates.items()
        for name, output in template.get("Outputs", {}).items()
        if "Export" in output
    }


def kept(environment: Synthesized) -> dict[str, set[str]]:
    """The kinds of the resources that each parameter of SSM's has, by its name."""
    return {
        parameter["Name"]: {template["Resources"][each]["Type"] for each in names(parameter["Value"])}
        for part, template in environment.templates.items()
        for parameter in environment.of(part, "AWS::SSM::Parameter").values()
    }


def asked(environment: Synthesized) -> dict[str, str]:
    """What the stack `dagster` asks of SSM: the template's parameters, by the name in SSM."""
    prefix = f"/{environment.size.prefix}/"
    return {
        parameter["Default"]: name
        for name, parameter in environment.templates["dagster"]["Parameters"].items()
        if parameter["Type"] == "AWS::SSM::Parameter::Value<String>" and parameter["Default"].startswith(prefix)
    }


def code(environment: Synthesized) -> dict[str, Any]:
    """The variables of the task `code`, as the template has them."""
    return {
        each["Name"]: each["Value"]
        for task in environment.of("dagster", "AWS::ECS::TaskDefinition").values()
        for container in task["ContainerDefinitions"]
        if container["Name"] == "code"
        for each in container["Environment"]
    }


def test_no_export_locks_what_is_replaced(environment: Synthesized, variant: Synthesized) -> None:
    for each in (environment, variant):
        found = exported(each)
        assert "AWS::IAM::Role" in set().union(*found.values()), "the exports are not read as they are"
        assert {name for name, kinds in found.items() if kinds & REPLACED} == set()


def test_dagster_asks_for_what_is_told(variant: Synthesized) -> None:
    workers = {f"/cdc-lake-variant/connect-worker-{pipeline}" for pipeline in variant.size.pipelines}
    assert kept(variant) == {
        "/cdc-lake-variant/emr-cluster": {"AWS::EMR::Cluster"},
        **{worker: {"AWS::KafkaConnect::WorkerConfiguration"} for worker in workers},
    }
    assert asked(variant).keys() == kept(variant).keys()


def test_without_a_cluster_nobody_asks_for_one(dev: Synthesized) -> None:
    assert asked(dev).keys() == kept(dev).keys() == {"/cdc-lake-dev/connect-worker-northwind"}


def test_variables_and_the_policy_have_the_values(variant: Synthesized) -> None:
    parameters, variables = asked(variant), code(variant)
    cluster = {"Ref": parameters["/cdc-lake-variant/emr-cluster"]}
    assert variables["CDC_LAKE_EMR_CLUSTER"] == cluster
    for pipeline in variant.size.pipelines:
        worker = {"Ref": parameters[f"/cdc-lake-variant/connect-worker-{pipeline}"]}
        assert variables[f"CDC_LAKE_CONNECT_WORKER_{pipeline.upper()}"] == worker
    [steps] = [each.resources for each in statements(variant) if "elasticmapreduce:AddJobFlowSteps" in each.actions]
    assert [each.endswith(f":cluster/{text(cluster)}") for each in steps] == [True]


@pytest.mark.parametrize("part", ["connect", "spark"])
def test_dagster_is_deployed_after_who_tells_it(environment: Synthesized, part: str) -> None:
    assert part in environment.needs["dagster"]
