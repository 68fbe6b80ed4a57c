"""Column lineage of a dataset, read from its SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import dagster as dg
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import lineage


def query_lineage(
    sql: str, columns: Iterable[str], sources: Mapping[str, tuple[dg.AssetKey, Sequence[str]]]
) -> dg.TableColumnLineage:
    """Return the lineage of a query's columns.

    `sources` maps each table or view that the SQL may name to its asset and its columns (empty for a table that does
    not exist yet). A column has no dependencies if it is not derived from a source (a constant), or if sqlglot cannot
    resolve it, because it comes from a table that is not in `sources`.
    """
    # sqlglot rejects a schema that contains a table without columns.
    schema = {name: dict.fromkeys(known, "varchar") for name, (_, known) in sources.items() if known}
    return dg.TableColumnLineage({column: _origins(column, sql, schema, sources) for column in columns})


def _origins(
    column: str,
    sql: str,
    schema: Mapping[str, Mapping[str, str]],
    sources: Mapping[str, tuple[dg.AssetKey, Sequence[str]]],
) -> list[dg.TableColumnDep]:
    found = set()
    try:
        root = lineage(column, sql, schema={name: dict(known) for name, known in schema.items()}, dialect="athena")
    except SqlglotError:
        return []
    for node in root.walk():
        if not node.downstream and isinstance(node.expression, exp.Table) and node.expression.name in sources:
            found.add((node.expression.name, node.name.rpartition(".")[2].strip('"')))
    return [dg.TableColumnDep(sources[table][0], name) for table, name in sorted(found)]
