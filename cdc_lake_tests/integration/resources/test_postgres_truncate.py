"""Every form of TRUNCATE on a captured table is refused, on a real server."""

from __future__ import annotations

import psycopg2
import pytest

from cdc_lake_tests.integration.resources.source_side import Source


@pytest.fixture
def captured(source: Source) -> Source:
    """Return a source whose table `ev` refuses TRUNCATE and references `parent`."""
    source.execute(
        "create table parent (id int primary key); insert into parent values (1), (2);"
        "create table ev (id int primary key references parent); insert into ev values (1), (2); "
        'create table "O\'x" ()'
    )
    assert source.postgres.truncatable(source.schema, "ev") == [(source.schema, "ev")]
    assert source.postgres.refuse_truncate(source.schema, "ev") is True
    assert source.postgres.refuse_truncate(source.schema, "ev") is False
    assert source.postgres.truncatable(source.schema, "ev") == []
    return source


@pytest.mark.parametrize(
    "statement",
    [
        "truncate ev",
        "truncate table only ev restart identity",
        "truncate parent cascade",
        "truncate parent, ev",
        "set session_replication_role = replica; truncate ev",
    ],
)
def test_truncate_is_refused_and_no_row_is_removed(captured: Source, statement: str) -> None:
    with pytest.raises(psycopg2.errors.FeatureNotSupported, match=r"ev: cdc-lake captures it, .*a TRUNCATE") as refused:
        captured.execute(statement)
    hint = refused.value.diag.message_hint or ""
    assert f"Use DELETE FROM {captured.schema}.ev" in hint
    assert "trigger cdc_lake_refuse_truncate" in hint
    assert "cdc-lake resnapshot" in hint
    assert captured.postgres.row_count(captured.schema, "ev") == 2
    assert captured.postgres.row_count(captured.schema, "parent") == 2


def test_deletes_and_truncates_of_other_tables_are_allowed(captured: Source) -> None:
    captured.execute('truncate "O\'x"; delete from ev')
    assert captured.postgres.row_count(captured.schema, "ev") == 0


@pytest.mark.parametrize("change", ["disable trigger all", "disable trigger cdc_lake_refuse_truncate"])
def test_a_disabled_trigger_is_reported_and_repaired(captured: Source, change: str) -> None:
    captured.execute(f"alter table ev {change}")
    assert captured.postgres.truncatable(captured.schema, "ev") == [(captured.schema, "ev")]
    assert captured.postgres.refuse_truncate(captured.schema, "ev") is True
    assert captured.postgres.truncatable(captured.schema, "ev") == []
    captured.execute("drop trigger cdc_lake_refuse_truncate on ev")
    assert captured.postgres.truncatable(captured.schema, "ev") == [(captured.schema, "ev")]


def test_a_partition_of_a_captured_table_refuses_truncate(source: Source) -> None:
    source.execute(
        "create table ev (id int primary key) partition by range (id);"
        "create table ev_1 partition of ev for values from (0) to (10); insert into ev values (1)"
    )
    assert source.postgres.refuse_truncate(source.schema, "ev")
    for table in ("ev", "ev_1"):
        with pytest.raises(psycopg2.errors.FeatureNotSupported):
            source.execute(f"truncate {table}")
    source.execute("create table ev_2 partition of ev for values from (10) to (20)")
    assert source.postgres.truncatable(source.schema, "ev") == [(source.schema, "ev_2")]
    assert source.postgres.refuse_truncate(source.schema, "ev")
    with pytest.raises(psycopg2.errors.FeatureNotSupported):
        source.execute("truncate ev_2")


def test_a_deferrable_key_is_reported(source: Source) -> None:
    source.execute(
        "create table ev (id int primary key);"
        "create table late (id int, primary key (id) deferrable initially immediate)"
    )
    assert source.postgres.catalog(source.schema, "ev").deferrable is False
    assert source.postgres.catalog(source.schema, "late").deferrable is True
