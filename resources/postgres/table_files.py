"""The files in which PostgreSQL stores a table."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.postgres.table_queries import table_oid

# The filenodes of the table and of its partitions, and the number of pages if one heap contains all rows.
_FILES = """
select array(select pg_relation_filenode(relid)::bigint from pg_partition_tree(%(oid)s::regclass)
              where isleaf order by relid),
       case when c.relkind = 'r' and am.amname = 'heap'
             and not exists (select from pg_inherits where inhparent = c.oid)
            then pg_relation_size(c.oid) / current_setting('block_size')::bigint end
  from pg_class c left join pg_am am on am.oid = c.relam
 where c.oid = %(oid)s
"""
_TID_RANGES_FROM = 140000
"""The first server_version_num with TID range scans, which read a range of ctid and not the rest of the table."""


@dataclass(frozen=True)
class TableFiles:
    """A table's files. `nodes` are their filenodes; a statement that rewrites or truncates the table changes them."""

    nodes: tuple[int, ...]
    pages: int | None
    """The number of pages, if the table can be read in ranges of ctid; None if it has to be read in one scan."""


def table_files(connection: Connection, schema: str, table: str) -> TableFiles:
    """Return the table's files. Raises TableMissing."""
    oid = table_oid(connection, schema, table)
    with connection.cursor() as cursor:
        cursor.execute(_FILES, {"oid": oid})
        row = cursor.fetchone()
    nodes, pages = row or ([], None)
    divisible = pages is not None and connection.server_version >= _TID_RANGES_FROM
    return TableFiles(tuple(nodes), int(pages) if divisible else None)
