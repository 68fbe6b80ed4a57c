"""The IAM statements of one role, and the actions that statements allow."""

from __future__ import annotations

from cdc_lake_tests.infra_aws.conftest import Synthesized
from cdc_lake_tests.infra_aws.iam.statements import Statement, statements, text


def role_statements(environment: Synthesized, role: str) -> list[Statement]:
    """Return the statements of a role, by the role's name without the environment's prefix."""
    ids, policies = set(), set()
    for where, kind, resource in environment.resources():
        properties = resource.get("Properties", {})
        if kind == "AWS::IAM::Role" and properties.get("RoleName") == f"{environment.size.prefix}-{role}":
            ids.add(where.rpartition("/")[2])
            policies |= {text(each) for each in properties.get("ManagedPolicyArns", [])}
    assert len(ids) == 1, f"there is no role {role}"
    found = []
    for where, kind, resource in environment.resources():
        name = where.rpartition("/")[2]
        own = kind == "AWS::IAM::Policy" and any(each.get("Ref") in ids for each in resource["Properties"]["Roles"])
        attached = kind == "AWS::IAM::ManagedPolicy" and any(name in each for each in policies)
        if own or attached:
            found += [each for each in statements(environment) if each.where == where]
    assert found, f"the role {role} has no statements"
    return found


def allowed(given: list[Statement]) -> set[str]:
    """Return the actions of statements."""
    return {action for each in given for action in each.actions}
