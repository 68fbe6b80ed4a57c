"""Cross-stack values: exports for stable resources, SSM parameters for resources that a change replaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cdc_lake_tests.infra_aws.conftest import Synthesized
from cdc_lake_tests.infra_aws.iam.statements import statements, text

REPLACED = {"AWS::EMR::Cluster", "AWS::KafkaConnect::WorkerConfiguration"}
"""A change replaces these resources, which CloudFormation refuses while another stack imports their export."""


def names(value: Any) -> Iterator[str]:  # noqa: ANN401 - a template's value
    """Yield the logical ids that a value of a template refers to."""
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
    """Return the resource types in each export."""
    return {
        f"{part}/{name}": {
            template["Resources"][each]["Type"] for each in names(output["Value"]) if each in template["Resources"]
        }
        for part, template in environment.templates.items()
        for name, output in template.get("Outputs", {}).items()
        if "Export" in output
    }


def written_to_ssm(environment: Synthesized) -> dict[str, set[str]]:
    """Return the resource types in each SSM parameter, by its name."""
    return {
        parameter["Name"]: {template["Resources"][each]["Type"] for each in names(parameter["Value"])}
        for part, template in environment.templates.items()
        for parameter in environment.of(part, "AWS::SSM::Parameter").values()
    }


def read_from_ssm(environment: Synthesized) -> dict[str, str]:
    """Return the template parameters of the stack `dagster` that read SSM, by the name in SSM."""
    prefix = f"/{environment.size.prefix}/"
    return {
        parameter["Default"]: name
        for name, parameter in environment.templates["dagster"]["Parameters"].items()
        if parameter["Type"] == "AWS::SSM::Parameter::Value<String>" and parameter["Default"].startswith(prefix)
    }


def code(environment: Synthesized) -> dict[str, Any]:
    """Return the variables of the task `code`, as in the template."""
    return {
        each["Name"]: each["Value"]
        for task in environment.of("dagster", "AWS::ECS::TaskDefinition").values()
        for container in task["ContainerDefinitions"]
        if container["Name"] == "code"
        for each in container["Environment"]
    }


def test_replaced_resources_are_not_exported(environment: Synthesized, opposite_of_dev: Synthesized) -> None:
    for each in (environment, opposite_of_dev):
        found = exported(each)
        assert "AWS::IAM::Role" in set().union(*found.values()), "the exports are not read correctly"
        assert {name for name, kinds in found.items() if kinds & REPLACED} == set()


def test_dagster_reads_every_ssm_parameter_that_is_written(opposite_of_dev: Synthesized) -> None:
    workers = {f"/cdc-lake-variant/connect-worker-{pipeline}" for pipeline in opposite_of_dev.size.pipelines}
    assert written_to_ssm(opposite_of_dev) == {
        "/cdc-lake-variant/emr-cluster": {"AWS::EMR::Cluster"},
        **{worker: {"AWS::KafkaConnect::WorkerConfiguration"} for worker in workers},
    }
    assert read_from_ssm(opposite_of_dev).keys() == written_to_ssm(opposite_of_dev).keys()


def test_without_a_cluster_there_is_no_parameter_for_it(dev: Synthesized) -> None:
    assert read_from_ssm(dev).keys() == written_to_ssm(dev).keys() == {"/cdc-lake-dev/connect-worker-northwind"}


def test_variables_and_policy_use_the_ssm_parameters(opposite_of_dev: Synthesized) -> None:
    parameters, variables = read_from_ssm(opposite_of_dev), code(opposite_of_dev)
    cluster = {"Ref": parameters["/cdc-lake-variant/emr-cluster"]}
    assert variables["CDC_LAKE_EMR_CLUSTER"] == cluster
    for pipeline in opposite_of_dev.size.pipelines:
        worker = {"Ref": parameters[f"/cdc-lake-variant/connect-worker-{pipeline}"]}
        assert variables[f"CDC_LAKE_CONNECT_WORKER_{pipeline.upper()}"] == worker
    [steps] = [
        each.resources for each in statements(opposite_of_dev) if "elasticmapreduce:AddJobFlowSteps" in each.actions
    ]
    assert [each.endswith(f":cluster/{text(cluster)}") for each in steps] == [True]


@pytest.mark.parametrize("part", ["connect", "spark"])
def test_dagster_is_deployed_after_the_stacks_that_write_its_parameters(environment: Synthesized, part: str) -> None:
    assert part in environment.needs["dagster"]
