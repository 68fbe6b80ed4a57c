"""Rejects TRUNCATE on captured tables with a trigger: Debezium's flattened events cannot represent it.

A TRUNCATE removes all rows without a change event for each, so the lake would keep them. The trigger rejects it for
every role, also by CASCADE from another table and with session_replication_role = replica (ENABLE ALWAYS).
"""

from __future__ import annotations

from psycopg2 import sql
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.postgres.table_queries import table_oid

TRIGGER = "cdc_lake_refuse_truncate"
"""The name of the trigger and of its function, which is in the table's schema."""

_FUNCTION = """
create or replace function {function}() returns trigger language plpgsql as $body$
begin
    raise exception 'cannot truncate table %.%: cdc-lake captures it, and cannot capture a TRUNCATE',
        tg_table_schema, tg_table_name
    using errcode = 'feature_not_supported',
        detail = 'Nothing was removed.',
        hint = format('Use DELETE FROM %I.%I. Or drop the trigger {trigger}, truncate the table, materialise its '
            'source asset, and run `cdc-lake resnapshot` for its pipeline.', tg_table_schema, tg_table_name);
end
$body$
"""
# TRUNCATE of a partition by its own name does not fire its parent's trigger, so each partition needs the trigger.
_MEMBERS = """
with recursive member(oid) as (
    select %s::oid union select i.inhrelid from pg_inherits i join member m on i.inhparent = m.oid
)
select n.nspname, c.relname, coalesce(t.tgenabled = 'A', false)
from member m
join pg_class c on c.oid = m.oid
join pg_namespace n on n.oid = c.relnamespace
left join pg_trigger t on t.tgrelid = c.oid and t.tgname = %s and not t.tgisinternal
order by n.nspname, c.relname
"""


def truncatable(connection: Connection, schema: str, table: str) -> list[tuple[str, str]]:
    """Return schema and name of each table that does not reject TRUNCATE, among the table and its partitions."""
    with connection.cursor() as cursor:
        cursor.execute(_MEMBERS, (table_oid(connection, schema, table), TRIGGER))
        return [(schema_name, name) for schema_name, name, guarded in cursor if not guarded]


def refuse_truncate(connection: Connection, schema: str, table: str) -> bool:
    """Create the trigger on the table and its partitions; return whether one was missing."""
    missing = truncatable(connection, schema, table)
    trigger = sql.Identifier(TRIGGER)
    for schema_name, name in missing:
        function, target = sql.Identifier(schema_name, TRIGGER), sql.Identifier(schema_name, name)
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL(_FUNCTION).format(function=function, trigger=sql.SQL(TRIGGER)))
            cursor.execute(
                sql.SQL(
                    "drop trigger if exists {trigger} on {target};"
                    " create trigger {trigger} before truncate on {target} for each statement"
                    " execute function {function}();"
                    " alter table {target} enable always trigger {trigger}"
                ).format(trigger=trigger, target=target, function=function)
            )
    return bool(missing)
