"""Passes values from one stack to another through SSM parameters.

These values change when a resource is replaced. CloudFormation rejects such a change of an exported value
that another stack imports.
"""

from __future__ import annotations

from aws_cdk import aws_ssm as ssm

from infra.aws.stacks.shared.base_stack import LakeStack


def share(stack: LakeStack, name: str, value: str) -> None:
    """Store a value of this stack in the parameter `name`."""
    ssm.StringParameter(
        stack, f"Shared-{name}", parameter_name=_path(stack, name), string_value=value, description="For other stacks"
    )


def shared_value(stack: LakeStack, by: LakeStack, name: str) -> str:
    """Return a reference to a value that the stack `by` shares, and make this stack depend on it.

    CloudFormation resolves the reference at each deployment of this stack. Several calls with the same name add one
    parameter to the template.
    """
    stack.add_stack_dependency(by)
    found: str = ssm.StringParameter.value_for_string_parameter(stack, _path(stack, name))
    return found


def _path(stack: LakeStack, name: str) -> str:
    return f"/{stack.size.prefix}/{name}"
