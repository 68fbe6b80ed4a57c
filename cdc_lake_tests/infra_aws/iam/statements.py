"""IAM statements read from templates, and AWS's reference of actions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from cdc_lake_tests.infra_aws.conftest import Synthesized


@dataclass(frozen=True)
class Statement:
    """A statement: its stack and resource, and its parts as lists."""

    where: str
    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: dict[str, Any]
    principals: tuple[str, ...]


def statements(environment: Synthesized) -> Iterator[Statement]:
    """Yield every statement of every policy, of roles and of resources."""
    for where, _, resource in environment.resources():
        for document in _documents(resource.get("Properties", {})):
            for each in _list(document["Statement"]):
                yield Statement(
                    where,
                    each["Effect"],
                    tuple(_list(each.get("Action", []))),
                    tuple(text(resource) for resource in _list(each.get("Resource", []))),
                    each.get("Condition", {}),
                    tuple(_principals(each.get("Principal", []))),
                )


def text(value: Any) -> str:  # noqa: ANN401 - a template's value
    """Return a value of a template as text; values that CloudFormation inserts are written as {…}."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        separator, pieces = value["Fn::Join"]
        return str(separator).join(text(piece) for piece in pieces)
    if "Fn::Select" in value:
        return "{selected}"
    return "{" + json.dumps(value, sort_keys=True) + "}"


@cache
def reference() -> dict[str, dict[str, Any]]:
    """Return every AWS action by service, with its resource types, from cfn-lint's table."""
    table = resources.files("cfnlint") / "data" / "AdditionalSpecs" / "Policies.json"
    loaded: dict[str, dict[str, Any]] = json.loads(table.read_text(encoding="utf-8"))
    return loaded


def known(action: str) -> dict[str, Any] | None:
    """Return the reference's entry of an action; None if there is no such action."""
    service, _, name = action.partition(":")
    found: dict[str, Any] | None = reference().get(service, {}).get("Actions", {}).get(name.lower())
    return found


def _documents(value: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - a template's value
    """Yield every policy document below a value, in any property."""
    if isinstance(value, dict):
        if "Statement" in value:
            yield value
        for each in value.values():
            yield from _documents(each)
    elif isinstance(value, list):
        for each in value:
            yield from _documents(each)


def _principals(value: Any) -> Iterator[str]:  # noqa: ANN401 - a template's value
    if isinstance(value, dict):
        for each in value.values():
            yield from (text(one) for one in _list(each))
    else:
        yield from (text(one) for one in _list(value))


def _list(value: Any) -> list[Any]:  # noqa: ANN401 - a template's value
    return value if isinstance(value, list) else [value]
