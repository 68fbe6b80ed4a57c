"""Reject pipelines that share a topic or a catalog entry: a reset of one would delete it for the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.naming import Flow


def require_apart(flows: Iterable[Flow]) -> None:
    """Raise ContractError if two pipelines own the same topic or catalog entry.

    The message names both pipelines, what they share, and the field to change.
    """
    owners: dict[tuple[str, str], str] = {}
    for flow in flows:
        for kind, name, field in _owned(flow):
            owner = owners.setdefault((kind, name), flow.name)
            if owner != flow.name:
                raise ContractError(
                    f"pipelines {owner} and {flow.name} would both own {kind} {name}, and resetting one would break "
                    f"the other: give {flow.name} another {field}"
                )


def _owned(flow: Flow) -> Iterator[tuple[str, str, str]]:
    """Yield kind, name and YAML field of each topic and catalog entry that a pipeline creates."""
    for topic in (*(table.topic for table in flow.tables), flow.heartbeat_topic):
        yield "topic", topic, "stream.prefix"
    catalog = flow.spec.catalog
    for table in flow.tables:
        yield "catalog entry", f"{catalog}.{table.name}", "catalog"
        yield "catalog entry", f"{catalog}.{table.view}", "catalog"
    for file in flow.spec.datasets:
        yield "catalog entry", f"{catalog}.{PurePath(file).stem}", "catalog"
