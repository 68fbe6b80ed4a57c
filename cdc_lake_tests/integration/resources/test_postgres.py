"""The PostgreSQL resource on a real server."""

from __future__ import annotations

import pytest
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from cdc_lake_tests.integration.resources.source_side import Source
from resources.errors import AccessRefused, DatabaseMissing, PublicationConflict, TableMissing
from resources.postgres.internal_tables.heartbeat_table import HEARTBEAT


def test_columns_are_as_declared(source: Source) -> None:
    source.execute(
        "create domain money2 as numeric(6,2) not null; create domain wage as money2;"
        "create type mood as enum ('a', 'b');"
        'create table "T x" (id int, "Dropped" int, name varchar(10) default \'q\', primary key (name, id),'
        " n numeric, m numeric(5,-2), w wage, e mood, a int[], ts timestamptz(3) not null,"
        ' g int generated always as (id * 2) stored, r int4range); alter table "T x" drop column "Dropped"'
    )
    columns = {column.name: column for column in source.postgres.columns(source.schema, "T x")}
    assert list(columns) == ["id", "name", "n", "m", "w", "e", "a", "ts", "g", "r"]
    assert [column.position for column in columns.values()] == [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert {name for name, column in columns.items() if not column.nullable} == {"id", "name", "ts", "w"}
    assert (columns["name"].type_name, columns["name"].base_type) == ("character varying(10)", "character varying")
    assert columns["name"].default == "'q'::character varying"
    assert [columns[name].resolved_type for name in ("n", "m", "w")] == ["numeric", "numeric(5,-2)", "numeric(6,2)"]
    wage = columns["w"]
    assert wage.base_type == "numeric"
    assert wage.type_name == f"{source.schema}.wage"
    assert {columns[name].kind for name in ("n", "ts", "w")} == {"base"}
    assert [columns[name].kind for name in ("e", "a", "r")] == ["enum", "array", "range"]
    assert columns["g"].generated
    assert columns["g"].default is None
    assert source.postgres.catalog(source.schema, "T x").key == ("name", "id")


def test_row_security_is_reported_for_a_role_that_it_applies_to(source: Source) -> None:
    role = f"{source.schema}_reader"
    source.execute(
        "create table hidden (id int primary key); alter table hidden enable row level security;"
        f"create role {role} login password 'x'; grant usage on schema {source.schema} to {role};"
        f"grant select on hidden to {role}"
    )
    reader = source.postgres.model_copy(update={"user": role, "password": "x"})
    assert not source.postgres.catalog(source.schema, "hidden").row_security
    assert reader.catalog(source.schema, "hidden").row_security


def test_a_missing_table_is_named(source: Source) -> None:
    for question in (source.postgres.columns, source.postgres.row_count, source.postgres.catalog):
        with pytest.raises(TableMissing, match=f"Cannot use table {source.schema}.nope"):
            question(source.schema, "nope")


def test_names_are_quoted(source: Source) -> None:
    name = 'a"; drop table x; --'
    source.execute('create table "a""; drop table x; --" (id int primary key); create table x (id int)')
    assert source.postgres.row_count(source.schema, name) == 0
    assert source.postgres.set_replica_identity(source.schema, name, "full")
    assert source.postgres.replica_identity(source.schema, name) == "full"
    assert not source.postgres.set_replica_identity(source.schema, name, "full")
    assert source.postgres.row_count(source.schema, "x") == 0


def test_refused_logins_name_the_user_or_the_database(source: Source) -> None:
    with pytest.raises(AccessRefused, match=r"rejects user postgres .*cdc-lake up"):
        source.postgres.model_copy(update={"password": "wrong"}).current_lsn()
    with pytest.raises(DatabaseMissing, match=r"database nope: .*no such database"), source.postgres.connect("nope"):
        pass


def test_a_block_without_autocommit_is_one_transaction(source: Source) -> None:
    source.execute("create table ev (id int)")
    statement = f"insert into {source.schema}.ev values (1)"
    with source.postgres.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(statement)

    def interrupted() -> None:
        with source.postgres.connect(autocommit=False) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert source.postgres.row_count(source.schema, "ev") == 1


def test_a_new_transaction_id_is_after_those_of_all_open_transactions(source: Source) -> None:
    """No later transaction has ended, so that the snapshot's xmax is not after the open ones either."""
    with source.postgres.connect(autocommit=False) as one, source.postgres.connect(autocommit=False) as other:
        opened = [_write(each) for each in (one, other)]
        assert source.postgres.oldest_open_xid() <= opened[0] < opened[1] < source.postgres.new_xid()


def _write(connection: Connection) -> int:
    """Write something in a transaction, and return its id."""
    with connection.cursor() as cursor:
        cursor.execute("create temp table written () on commit drop")
        cursor.execute("select pg_current_xact_id()::text::bigint")
        [(xid,)] = cursor.fetchall()
    return int(xid)


def test_a_publication_is_created_and_extended(source: Source) -> None:
    source.execute("create table ev (id int primary key, v int); create table other (id int primary key)")
    postgres, name = source.postgres, source.schema
    ev, other = (source.schema, "ev"), (source.schema, "other")
    assert postgres.publication(name) is None
    with pytest.raises(TableMissing):
        postgres.ensure_publication(name, [(source.schema, "nope")])
    created = postgres.ensure_publication(name, [ev])
    extended = postgres.ensure_publication(name, [ev, other])
    again = postgres.ensure_publication(name, [ev])
    assert [change.action for change in (created, extended, again)] == ["created", "extended", "unchanged"]
    assert (created.added, extended.added, again.added) == ((ev,), (other,), ())
    found = postgres.publication(name)
    assert found is not None
    assert found.tables == (ev, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("alter publication {name} set (publish = 'insert, update')", "does not publish delete"),
        ("alter publication {name} set table {name}.ev where (id > 1)", "row filter or a column list on .*ev"),
        ("alter publication {name} set table {name}.ev (id)", "row filter or a column list on .*ev"),
    ],
    ids=["operations", "rows", "columns"],
)
def test_a_publication_that_omits_changes_is_refused(source: Source, change: str, message: str) -> None:
    source.execute("create table ev (id int primary key, v int)")
    tables = [(source.schema, "ev")]
    source.postgres.ensure_publication(source.schema, tables)
    source.execute(change.format(name=source.schema))
    with pytest.raises(PublicationConflict, match=message):
        source.postgres.ensure_publication(source.schema, tables)


def test_the_state_of_a_slot_is_read_and_it_is_dropped(source: Source) -> None:
    name = source.schema
    assert source.postgres.slot(name) is None
    assert source.postgres.drop_slot(name) is False
    source.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", name)
    slot = source.postgres.slot(name)
    assert slot is not None
    assert (slot.plugin, slot.active, slot.wal_status, slot.invalidation_reason) == (
        "pgoutput",
        False,
        "reserved",
        None,
    )
    assert slot.restart_lsn is not None
    assert slot.confirmed_flush_lsn is not None
    assert slot.restart_lsn <= slot.confirmed_flush_lsn <= source.postgres.current_lsn()
    assert slot.retained_bytes is not None
    assert slot.retained_bytes >= 0
    assert source.postgres.drop_slot(name) is True
    assert source.postgres.slot(name) is None


def test_heartbeats_return_their_lsns(source: Source) -> None:
    assert source.postgres.ensure_internal_table(source.schema, HEARTBEAT) is True
    assert source.postgres.ensure_internal_table(source.schema, HEARTBEAT) is False
    before = source.postgres.current_lsn()
    lsns = [source.postgres.write_heartbeat(source.schema) for _ in range(3)]
    assert before <= lsns[0] < lsns[1] < lsns[2] < source.postgres.current_lsn()
    assert source.postgres.row_count(source.schema, "cdc_heartbeat") == 1
