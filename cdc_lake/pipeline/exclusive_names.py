"""Reject pipelines that share a topic or a catalog entry: a reset of one would delete it for the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.pipeline import Pipeline


def require_exclusive(pipelines: Iterable[Pipeline]) -> None:
    """Raise ContractError if two pipelines own the same topic or catalog entry.

    The message names both pipelines, what they share, and the field to change.
    """
    owners: dict[tuple[str, str], str] = {}
    for pipeline in pipelines:
        for kind, name, field in _owned(pipeline):
            owner = owners.setdefault((kind, name), pipeline.name)
            if owner != pipeline.name:
                raise ContractError(
                    f"Cannot load pipelines {owner} and {pipeline.name}: both would own {kind} {name}, and a reset of "
                    f"one would delete it for the other. Give {pipeline.name} another {field}."
                )


def _owned(pipeline: Pipeline) -> Iterator[tuple[str, str, str]]:
    """Yield kind, name and YAML field of each topic and catalog entry that a pipeline creates."""
    for topic in (*(table.topic for table in pipeline.tables), *pipeline.own_topics):
        yield "topic", topic, "stream.prefix"
    for table in pipeline.lake_tables:
        for name in table.catalog_entries:
            yield "catalog entry", f"{table.database}.{name}", "targets.database"
    for dataset in pipeline.spec.datasets:
        yield "catalog entry", f"{pipeline.catalog}.{dataset.name}", "targets.database"
