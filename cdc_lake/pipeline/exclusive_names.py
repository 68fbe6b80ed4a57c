"""Reject pipelines that share a topic or a catalog entry: a reset of one would delete it for the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.flow import Flow


def require_exclusive(flows: Iterable[Flow]) -> None:
    """Raise ContractError if two pipelines own the same topic or catalog entry.

    The message names both pipelines, what they share, and the field to change.
    """
    owners: dict[tuple[str, str], str] = {}
    for flow in flows:
        for kind, name, field in _owned(flow):
            owner = owners.setdefault((kind, name), flow.name)
            if owner != flow.name:
                raise ContractError(
                    f"Cannot load pipelines {owner} and {flow.name}: both would own {kind} {name}, and a reset of one "
                    f"would delete it for the other. Give {flow.name} another {field}."
                )


def _owned(flow: Flow) -> Iterator[tuple[str, str, str]]:
    """Yield kind, name and YAML field of each topic and catalog entry that a pipeline creates."""
    for topic in (*(table.topic for table in flow.tables), *(() if flow.polled else (flow.heartbeat_topic,))):
        yield "topic", topic, "stream.prefix"
    for table in flow.lake_tables:
        for name in table.catalog_entries:
            yield "catalog entry", f"{table.database}.{name}", "targets.database"
    for dataset in flow.spec.datasets:
        yield "catalog entry", f"{flow.catalog}.{dataset.name}", "targets.database"
