"""The AWS operations that the product calls, read from its syntax trees.

An operation counts if a module, or another module of its package, creates a client of the service and names the
operation: as a method, a paginator's name, a string for getattr(), or a string with a kind of QuickSight object in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import boto3
from botocore import xform_name

import cdc_lake
import resources
from resources.quicksight.objects import ANALYSIS, DASHBOARD, DATA_SET, DATA_SOURCE

RESOURCES = Path(str(resources.__file__)).parent
PRODUCT = Path(str(cdc_lake.__file__)).parent
PREFIXES = {"emr": "elasticmapreduce"}
"""IAM's prefix of a service, if it differs from boto3's name."""
_ACTIONS = {
    "s3:ListObjectsV2": "s3:ListBucket",
    "s3:HeadObject": "s3:GetObject",
    "s3:DeleteObjects": "s3:DeleteObject",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
}
"""IAM's action of an operation, if it differs from the operation's name."""
_TRANSFERS = {"upload_file": "s3:PutObject"}
"""Methods of boto3's clients that are not operations."""
_KINDS = tuple(kind.method for kind in (ANALYSIS, DASHBOARD, DATA_SET, DATA_SOURCE))
KAFKA: Mapping[str, frozenset[str]] = {
    "create_topics": frozenset({"CreateTopic"}),
    "delete_topics": frozenset({"DeleteTopic"}),
    "describe_configs": frozenset({"DescribeTopicDynamicConfiguration"}),
    "describe_topics": frozenset({"DescribeTopic"}),
    "incremental_alter_configs": frozenset({"AlterTopicDynamicConfiguration"}),
    "list_offsets": frozenset({"DescribeTopic"}),
    "list_topics": frozenset({"DescribeTopic"}),
    "AdminClient": frozenset({"Connect", "DescribeCluster"}),
    "Consumer": frozenset({"ReadData", "AlterGroup", "DescribeGroup"}),
    "Producer": frozenset({"WriteData", "WriteDataIdempotently"}),
}
"""The MSK actions that each call of confluent-kafka requires."""


def modules() -> list[Path]:
    """Return the resources' modules."""
    return sorted(RESOURCES.rglob("*.py"))


def actions(paths: Iterable[Path]) -> dict[str, str]:
    """Return IAM's action of each operation that the modules call, and the name of one module that calls it."""
    families: dict[str, list[Path]] = {}
    for path in paths:
        families.setdefault(path.stem if path.parent == RESOURCES else path.parent.name, []).append(path)
    found: dict[str, str] = {}
    for members in families.values():
        services = {service for path in members for service in _clients(path)}
        for path in members:
            names = set(_names(path))
            for service in services:
                known = {xform_name(operation): operation for operation in _operations(service)}
                for name in names & known.keys():
                    action = f"{PREFIXES.get(service, service)}:{known[name]}"
                    found.setdefault(_ACTIONS.get(action, action), path.name)
            if "s3" in services:
                found |= {_TRANSFERS[name]: path.name for name in names & _TRANSFERS.keys()}
    return found


def kafka_calls() -> set[str]:
    """Return the clients of confluent-kafka, and the methods of its admin client, that the resources use."""
    found: set[str] = set()
    for path in (RESOURCES / "kafka").glob("*.py"):
        for call in _calls(path):
            if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "admin":
                found.add(call.func.attr)
            elif isinstance(call.func, ast.Name) and call.func.id in {"AdminClient", "Consumer", "Producer"}:
                found.add(call.func.id)
    return found


@cache
def _operations(service: str) -> tuple[str, ...]:
    return tuple(boto3.client(service, region_name="us-east-1").meta.service_model.operation_names)  # type: ignore[call-overload]


def _clients(path: Path) -> Iterator[str]:
    """Yield the services for which a module creates clients."""
    for call in _calls(path):
        is_client_call = isinstance(call.func, ast.Attribute) and call.func.attr == "client" and call.args
        if is_client_call and isinstance(call.args[0], ast.Constant):
            yield str(call.args[0].value)


def _names(path: Path) -> Iterator[str]:
    """Yield all texts of a module that may be an operation's name."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            for kind in _KINDS:
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else kind for part in node.values)


def _calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(_tree(path)) if isinstance(node, ast.Call))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
