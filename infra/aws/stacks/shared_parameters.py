"""What one stack tells another by a parameter of SSM's, for values that change when a resource is replaced."""

from __future__ import annotations

from aws_cdk import aws_ssm as ssm

from infra.aws.stacks.base_stack import LakeStack


def tell(stack: LakeStack, name: str, value: str) -> None:
    """Keep a value of this stack's under the name."""
    ssm.StringParameter(
        stack, f"Told-{name}", parameter_name=_path(stack, name), string_value=value, description="Told to other stacks"
    )


def told(stack: LakeStack, by: LakeStack, name: str) -> str:
    """What the other stack told under the name, looked up with each deployment of this one, which comes after it.

    The same parameter of the template however often it is asked for: the library keeps them by their names.
    """
    stack.add_stack_dependency(by)
    found: str = ssm.StringParameter.value_for_string_parameter(stack, _path(stack, name))
    return found


def _path(stack: LakeStack, name: str) -> str:
    return f"/{stack.size.prefix}/{name}"
