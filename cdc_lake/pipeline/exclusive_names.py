"""Pipelines must not share what only one can own: a reset of one would take it from the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.naming import Flow


def require_apart(flows: Iterable[Flow]) -> None:
    """Return where no two pipelines own the same topic or catalog entry.

    Raises ContractError that names both pipelines, what they share, and the field to change.
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
    """Kind, name and deciding field of all that a pipeline makes outside of its own prefix in the bucket."""
    for topic in (*(table.topic for table in flow.tables), flow.heartbeat_topic):
        yield "topic", topic, "stream.prefix"
    catalog = flow.spec.catalog
    for table in flow.tables:
        yield "catalog entry", f"{catalog}.{table.name}", "catalog"
        yield "catalog entry", f"{catalog}.{table.view}", "catalog"
    for file in flow.spec.datasets:
        yield "catalog entry", f"{catalog}.{PurePath(file).stem}", "catalog"
